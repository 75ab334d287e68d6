package console;

/** Development mode wants something to compile. */
public final class Nothing {
}

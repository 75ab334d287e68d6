import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/** Reads one case a line from standard input and prints it with the bytes that Kafka's client makes of it. */
public final class GoldenBytes {
    public static void main(String[] args) throws Exception {
        var mapper = new ObjectMapper();
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(mapper.writeValueAsString(answer((ObjectNode) mapper.readTree(line))));
        }
        out.flush();
    }

    private static ObjectNode answer(ObjectNode question) throws Exception {
        String name = "org.apache.kafka.common.message." + question.get("message").asText() + "Data";
        short version = question.get("version").shortValue();
        var message = (Message) Class.forName(name + "JsonConverter")
            .getMethod("read", JsonNode.class, short.class)
            .invoke(null, question.get("value"), version);
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        question.put("bytes", HexFormat.of().formatHex(bytes));
        return question;
    }
}

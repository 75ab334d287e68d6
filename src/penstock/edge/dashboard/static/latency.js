// How long results took, in the last minute. Pure: time is an argument.
export const MINUTE_MS = 60_000;
const DOTS = 5_000, RATE_S = 10;
const UNITS = [["ms", 1, 1_000], ["s", 1_000, 60], ["min", 60_000, 60], ["h", 3_600_000, Infinity]];

// "12 ms", "1.2 s", "45 s", "2.5 min", "1,516 h".
export function duration(ms) {
  for (const [unit, size, limit] of UNITS) {
    const value = ms / size, shown = unit !== "ms" && value < 9.95 ? Math.round(value * 10) / 10 : Math.round(value);
    if (shown < limit) return `${shown.toLocaleString("en")} ${unit}`;
  }
}

// The results of one delivery. A result of an event that is older than a minute says nothing of how fast results are
// now: after a restart queries catch up with events that waited. It is counted apart.
export class Latencies {
  total = 0;
  older = 0;
  #dots = [];
  #seconds = new Map();

  // A result came now, of an event that was accepted then; 0 where that is not known.
  take(nowMs, acceptedMs) {
    this.total += 1;
    const second = Math.floor(nowMs / 1_000);
    this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + 1);
    if (!(acceptedMs > 0)) return;
    const ms = Math.max(0, nowMs - acceptedMs);
    if (ms > MINUTE_MS) { this.older += 1; return; }
    this.#dots.push({ at: nowMs, ms });
    if (this.#dots.length > DOTS) this.#dots.splice(0, this.#dots.length - DOTS);
  }

  // Results a second, over the last ten.
  rate(nowMs) {
    const since = Math.floor(nowMs / 1_000) - RATE_S;
    for (const second of this.#seconds.keys()) if (second <= since) this.#seconds.delete(second);
    return [...this.#seconds.values()].reduce((sum, count) => sum + count, 0) / RATE_S;
  }

  // When each result of the last minute came, and how long it took.
  dots(nowMs) {
    this.#dots = this.#dots.filter((dot) => nowMs - dot.at < MINUTE_MS);
    return this.#dots;
  }

  // The latency that this share of the results of the last minute stayed below; null if there are none.
  part(nowMs, share) {
    const times = this.dots(nowMs).map((dot) => dot.ms).sort((a, b) => a - b);
    return times.length ? times[Math.min(times.length - 1, Math.floor(times.length * share))] : null;
  }
}

// The live page: one delivery by EventSource, its numbers, its latency, its newest results.
import { Latencies, MINUTE_MS, duration } from "./latency.js";

const ROWS = 20, CHIP_VALUES = 6, ASK_QUERIES_MS = 1_000;
const MOODS = { approved: "good", ok: "good", declined: "bad", rejected: "bad", failed: "bad" };
const STATES = { running: "good", parked: "bad", silent: "bad", restarting: "bad" };
const at = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get("token");
const withToken = (path) => token ? path + (path.includes("?") ? "&" : "?") + "token=" + encodeURIComponent(token) : path;

let latencies = new Latencies(), rows = [], columns = [], values = new Map(), source = null, dirty = false, openedMs = 0;

const facts = await (await fetch(withToken("/app.json"))).json();
document.title = at("app").textContent = facts.app;
for (const delivery of facts.deliveries) at("delivery").append(new Option(delivery.topic, delivery.at));
at("choose").hidden = facts.deliveries.length < 2;
at("delivery").onchange = listen;
showCurl();
if (facts.deliveries.length) listen(); else at("empty").textContent = "This app delivers nothing yet: app.deliver(TOPIC).";

function listen() {
  source?.close();
  latencies = new Latencies(); rows = []; columns = []; values = new Map(); dirty = true; openedMs = Date.now();
  const delivery = facts.deliveries[at("delivery").selectedIndex];
  at("path").textContent = `${delivery.path.replaceAll("->", "→")} · ${delivery.promise}`;
  // With the latest that are there already; when the connection comes back, the browser says where it left off.
  source = new EventSource(withToken(`${delivery.at}?from=-${ROWS}`));
  source.onopen = () => link("live", "live");
  source.onerror = () => link("away", "connection lost, trying again");
  source.addEventListener(delivery.topic, (event) => take(JSON.parse(event.data)));
}

function link(state, words) { at("link").className = state; at("link").textContent = words; }

// Results may be old ones while the app cannot work: /ready knows.
async function showReadiness() {
  let reasons;
  try { reasons = (await (await fetch("/ready")).json()).reasons ?? []; } catch { return; }  // the link says that it is away
  at("trouble").hidden = !reasons.length;
  at("trouble").replaceChildren(...reasons.map((reason) => element("li", reason)));
}

function take(result) {
  const now = Date.now(), isNew = result.stored_ms >= openedMs;
  if (isNew) latencies.take(now, result.time_ms);
  const sent = result.value ?? result.text ?? result.base64 ?? null;
  const value = sent !== null && typeof sent === "object" && !Array.isArray(sent) ? sent : { value: sent };
  for (const name of Object.keys(value)) if (!columns.includes(name) && columns.length < 12) columns.push(name);
  if (isNew) for (const [name, cell] of Object.entries(value)) count(name, cell);
  rows.unshift({ value, at: isNew ? now : 0, stored: result.stored_ms });
  // What was there before comes partition by partition.
  if (!isNew) rows.sort((a, b) => b.stored - a.stored);
  rows.length = Math.min(rows.length, ROWS);
  dirty = true;
}

// A column of few texts is worth counting; one of many is not. Sentences that differ in their numbers are one text.
function count(name, cell) {
  if (values.get(name) === null || typeof cell !== "string") return;
  const seen = values.get(name) ?? values.set(name, new Map()).get(name);
  const text = /\s/.test(cell) ? cell.replace(/\d[\d.,]*/g, "…") : cell;
  seen.set(text, (seen.get(text) ?? 0) + 1);
  if (seen.size > CHIP_VALUES) values.set(name, null);
}

function element(tag, text, name) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function draw() {
  const now = Date.now(), median = latencies.part(now, 0.5), tail = latencies.part(now, 0.99);
  at("rate").textContent = latencies.rate(now).toFixed(1);
  at("median").textContent = median === null ? "–" : duration(median);
  at("tail").textContent = tail === null ? "–" : duration(tail);
  at("older").hidden = latencies.older === 0;
  at("older").textContent = `${latencies.older.toLocaleString("en")} ${latencies.older === 1 ? "result" : "results"} of older `
    + "events: more than a minute old when the result came, so not in median and p99";
  drawChart(now, median);
  if (dirty) drawRows(now);
  dirty = false;
}

function drawRows(now) {
  at("total").textContent = latencies.total.toLocaleString("en");
  at("empty").hidden = rows.length > 0;
  const isNumber = (name) => rows.some((row) => typeof row.value[name] === "number");
  at("columns").replaceChildren(...columns.map((name) => element("th", name, isNumber(name) ? "number" : "")));
  at("rows").replaceChildren(...rows.map((row) => {
    const line = element("tr", "", now - row.at < 1_000 ? "new" : "");
    line.append(...columns.map((name) => {
      const cell = row.value[name];
      const text = cell === null || cell === undefined ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell);
      return element("td", text, typeof cell === "number" ? "number" : MOODS[cell] ?? "");
    }));
    return line;
  }));
  at("chips").replaceChildren(...[...values].filter(([, seen]) => seen && seen.size > 1).slice(0, 3).map(([name, seen]) => {
    const line = element("p", "");
    for (const [text, times] of [...seen].sort((a, b) => b[1] - a[1])) {
      const chip = element("span", "", `chip ${MOODS[text] ?? ""}`);
      chip.append(element("i", text || name), times.toLocaleString("en"));
      line.append(chip);
    }
    return line;
  }));
}

function drawChart(now, median) {
  const canvas = at("chart"), scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== width * scale) { canvas.width = width * scale; canvas.height = height * scale; }
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.body);
  const color = (name) => style.getPropertyValue(name).trim();
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  // Logarithmic: shows a median of 5 ms and a pause of half a second.
  const left = 48, bottom = height - 18, y = (ms) => bottom - Math.log10(Math.max(1, ms)) / Math.log10(MINUTE_MS) * (bottom - 8);
  pen.font = "11px system-ui, sans-serif";
  for (const ms of [1, 10, 100, 1_000, 10_000, MINUTE_MS]) {
    pen.strokeStyle = color("--line"); pen.beginPath(); pen.moveTo(left, y(ms)); pen.lineTo(width, y(ms)); pen.stroke();
    pen.fillStyle = color("--soft"); pen.textAlign = "right"; pen.fillText(duration(ms), left - 8, y(ms) + 4);
  }
  pen.textAlign = "left"; pen.fillText("a minute ago", left, height - 4);
  pen.textAlign = "right"; pen.fillText("now", width, height - 4);
  pen.fillStyle = color("--water"); pen.globalAlpha = 0.6;
  for (const dot of latencies.dots(now)) {
    pen.beginPath(); pen.arc(width - (now - dot.at) / MINUTE_MS * (width - left), y(dot.ms), 2.2, 0, 7); pen.fill();
  }
  pen.globalAlpha = 1;
  if (median !== null) {
    pen.strokeStyle = color("--water"); pen.setLineDash([4, 4]);
    pen.beginPath(); pen.moveTo(left, y(median)); pen.lineTo(width, y(median)); pen.stroke(); pen.setLineDash([]);
  }
}

async function showQueries() {
  let found = [];
  try { found = await (await fetch(withToken("/queries.json"))).json(); } catch { return; }  // the link says that it is away
  at("queries").hidden = !found.length;
  const number = (value) => value === null || value === undefined ? "–" : value.toLocaleString("en");
  at("states").replaceChildren(...found.map((query) => {
    const line = element("tr", ""), state = element("td", query.state, STATES[query.state] ?? ""), mode = element("td", query.mode ?? "");
    if (query.reason) state.append(element("small", ` ${query.reason}`));
    if (query.mode_reason) mode.append(element("small", ` ${query.mode_reason}`));
    line.append(element("td", query.query), state, mode, element("td", number(query.lag), "number"),
      element("td", number(query.rows_in_per_s), "number"), element("td", `${query.reads.join(", ")} → ${query.writes}`));
    return line;
  }));
}

function fresh(sample) {
  return sample.replaceAll("NEW-ID", `by-hand-${Date.now().toString(36)}`).replaceAll('"NOW"', `"${new Date().toISOString()}"`);
}

function showCurl() {
  const door = facts.doors[0];
  if (!door) return;
  at("send").hidden = false;
  const path = door.path + (door.wait.length ? `?wait=${door.wait[0]}` : "");
  const command = () => `curl ${token ? `-H 'Authorization: Bearer ${token}' ` : ""}-H 'Content-Type: application/json' \\\n`
    + `  -d '${fresh(door.sample)}' \\\n  '${location.origin}${path}'`;
  at("curl").textContent = command();
  at("copy").onclick = async () => {
    at("curl").textContent = command();
    await navigator.clipboard.writeText(at("curl").textContent);
    at("answer").textContent = "copied";
  };
  at("try").onclick = async () => {
    const body = fresh(door.sample), began = performance.now();
    at("curl").textContent = command();
    const answer = await fetch(withToken(path), { method: "POST", headers: { "Content-Type": "application/json" }, body });
    at("answer").textContent = `${answer.status} in ${(performance.now() - began).toFixed(1)} ms: ${(await answer.text()).trim()}`;
  };
}

setInterval(draw, 250);
draw();
setInterval(showQueries, ASK_QUERIES_MS);
setInterval(showReadiness, ASK_QUERIES_MS);
showReadiness();
showQueries();

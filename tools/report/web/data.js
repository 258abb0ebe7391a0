// The document with its columns, and helpers that several sections share.
const doc = JSON.parse(document.getElementById("data").textContent);
const {samples, buffers, steps, values, nodes, texts, summary} = doc;
// Full names, and the samples between which a buffer is not just being copied.
for (const table of [values, nodes]) {
  table.name = table.name.map((name, i) => texts[table.path[i]] + name);
}
buffers.ready = buffers.from.map((from, b) => from + buffers.copied_in[b]);
buffers.done = buffers.to.map((to, b) => to - buffers.copied_out[b]);
const sampleCount = samples.step.length;
const COPIES = doc.kinds.length - 1;
const WORKSPACE = doc.kinds.length - 2;
const reservedBytes = doc.machine ? doc.machine.reserved_bytes : 0;

function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = Math.abs(bytes), unit = 0;
  while (size >= 1024 && unit < units.length - 1) { size /= 1024; ++unit; }
  const digits = unit === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(size)));
  return (bytes < 0 ? "-" : "") + size.toFixed(Math.max(0, digits)) + " " +
      units[unit];
}

function formatNs(ns) {
  const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
  const [size, name] =
      units.find(([u]) => Math.abs(ns) >= u) || units[units.length - 1];
  return Number((ns / size).toPrecision(3)) + " " + name;
}

function formatShare(part, whole) {
  return whole === 0 ? "-" : (100 * part / whole).toFixed(1) + " %";
}

function bufferName(b) {
  return buffers.value[b] < 0 ? "workspace" : values.name[buffers.value[b]];
}

function bufferKind(b) {
  return buffers.value[b] < 0 ? WORKSPACE : values.kind[buffers.value[b]];
}

// The kind of a buffer at a sample: its own, or a running copy.
function kindAt(b, sample) {
  return sample < buffers.ready[b] || sample >= buffers.done[b]
      ? COPIES : bufferKind(b);
}

// Buffers alive at a sample, as rows of a table.
function aliveAt(sample) {
  const rows = [];
  for (let b = 0; b < buffers.value.length; ++b) {
    if (buffers.from[b] > sample || sample >= buffers.to[b]) continue;
    const v = buffers.value[b];
    rows.push({
      name: bufferName(b), bytes: buffers.bytes[b],
      kind: doc.kinds[kindAt(b, sample)],
      action: v < 0 ? "" : texts[values.action[v]],
      module: v < 0 ? "" : texts[values.module[v]],
    });
  }
  return rows;
}

// Bytes at each sample, by kind.
const stackByKind = (() => {
  const stack = doc.kinds.map(() => new Array(sampleCount + 1).fill(0));
  const add = (kind, from, to, bytes) => {
    if (from >= to) return;
    stack[kind][from] += bytes;
    stack[kind][to] -= bytes;
  };
  for (let b = 0; b < buffers.value.length; ++b) {
    const bytes = buffers.bytes[b];
    add(COPIES, buffers.from[b], buffers.ready[b], bytes);
    add(bufferKind(b), buffers.ready[b], buffers.done[b], bytes);
    add(COPIES, buffers.done[b], buffers.to[b], bytes);
  }
  for (const row of stack) {
    for (let i = 1; i < row.length; ++i) row[i] += row[i - 1];
    row.pop();
  }
  return stack;
})();

const peakSample = samples.live_bytes.reduce(
    (best, bytes, i) => bytes > samples.live_bytes[best] ? i : best, 0);

function stepName(s) {
  if (s < 0) return "the start";
  const node = steps.node[s];
  if (node >= 0) return nodes.name[node] + (steps.again[s] ? " (again)" : "");
  if (steps.value[s] < 0) return "";
  const codec = texts[steps.codec[s]];
  return values.name[steps.value[s]] + (codec ? ` (${codec})` : "");
}

// blocks.0.qkv and blocks.3.qkv are one layer, repeated.
function layerOf(module) { return module.replace(/\d+/g, "*"); }

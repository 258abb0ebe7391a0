// Whether the plan fits, its cost, and suggested changes.
function setText(id, text) { document.getElementById(id).textContent = text; }

function adviceLines() {
  const lines = [];
  const kept = summary.keep_everything_step_ns;
  const time = summary.predicted_step_ns;
  if (summary.offloaded_values === 0) {
    const canCopy = doc.machine && doc.machine.d2h_bytes_per_s > 0 &&
        doc.machine.h2d_bytes_per_s > 0;
    lines.push("Nothing is copied out" + (!canCopy ?
        ": this machine's profile has no copy rates." :
        summary.recompute_ns > 0 ?
        ": do not offload, recomputing was found to cost less." : "."));
  } else if (summary.stall_ns * 1000 < time) {
    lines.push(`The copies of ${summary.offloaded_values} tensors hide behind ` +
        "compute: copying is predicted to cost no time.");
  } else {
    lines.push(`The copies do not hide: the step waits ` +
        `${formatNs(summary.stall_ns)} (${formatShare(summary.stall_ns, time)}) ` +
        "for them.");
  }
  if (summary.recompute_ns > 0) {
    lines.push(`Recomputation takes ${formatNs(summary.recompute_ns)} ` +
        `(${formatShare(summary.recompute_ns, time)} of the step).`);
  }
  if (summary.compressed_values > 0) {
    lines.push(`${summary.compressed_values} tensors are stored compressed: ` +
        `${formatBytes(summary.compression_saved_bytes)} less` +
        (summary.error_share > 0 ?
         `, with ${formatShare(summary.error_share, 1)} of the error of the ` +
         "gradient that is allowed." : ", without loss."));
  }
  const spare = summary.predicted_step_ns - summary.bound_step_ns;
  lines.push(spare * 1000 < kept
    ? "No plan at this budget is faster: the proven bound is met."
    : "No plan at this budget can be faster by more than " +
      `${formatShare(spare, time)} (proven).`);
  return lines;
}

function showSummary() {
  const title = "Loadline: " + summary.problem;
  document.title = title;
  setText("title", title);
  setText("verdict", summary.verdict);
  setText("command", doc.command);
  const advice = document.getElementById("advice");
  for (const line of adviceLines()) {
    advice.append(Object.assign(document.createElement("li"),
        {textContent: line}));
  }
  const slower = summary.predicted_step_ns - summary.keep_everything_step_ns;
  const facts = [
    ["Budget", formatBytes(summary.budget_bytes)],
    ["To spare", formatBytes(summary.budget_bytes - summary.arena_bytes)],
    ["Arena", formatBytes(summary.arena_bytes)],
    ["Peak of live bytes", formatBytes(summary.predicted_peak_bytes) + " (" +
      formatShare(summary.predicted_peak_bytes,
          summary.keep_everything_peak_bytes) + ")"],
    ["Step", formatNs(summary.predicted_step_ns)],
    ["Slower than keeping all",
      formatShare(slower, summary.keep_everything_step_ns)],
    ["Host store", formatBytes(summary.host_bytes)],
    ["Outside the plan", formatBytes(reservedBytes)],
    ["Proven: no plan's peak below", formatBytes(summary.bound_peak_bytes)],
    ["Proven: no step here below", formatNs(summary.bound_step_ns)],
  ];
  if (doc.measured) {
    facts.push(["Step, measured", formatNs(doc.measured.step_ns)]);
  }
  const list = document.getElementById("facts");
  for (const [name, value] of facts) {
    const box = document.createElement("div");
    box.append(
        Object.assign(document.createElement("dt"), {textContent: name}),
        Object.assign(document.createElement("dd"), {textContent: value}));
    list.append(box);
  }
}

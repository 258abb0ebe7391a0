// The Pareto front of the sweep: step time at each budget.
const MIB = 1024 * 1024;
const ms = (ns) => ns / 1e6;

function frontOption(colors) {
  const front = doc.front;
  const series = [];
  const sizes = [...new Set(front.map((p) => p.size || 0))];
  for (const size of sizes) {
    const points = front.filter((p) => (p.size || 0) === size);
    const of = size ? `, ${points[0].axis} ${size}` : "";
    series.push({id: "predicted" + size, name: "predicted" + of, type: "line",
      symbolSize: 9, data: points.map(
          (p) => [p.budget_bytes / MIB, ms(p.predicted_step_ns)])});
    series.push({id: "bound" + size, name: "proven bound" + of, type: "line",
      symbol: "none", lineStyle: {type: "dashed"},
      data: points.map((p) => [p.budget_bytes / MIB, ms(p.bound_step_ns)])});
    const measured = points.filter((p) => p.step_ns !== undefined);
    if (measured.length > 0) {
      series.push({id: "measured" + size, name: "measured" + of,
        type: "scatter", symbol: "diamond", symbolSize: 11,
        data: measured.map((p) => [p.budget_bytes / MIB, ms(p.step_ns)])});
    }
  }
  const mark = (id, name, x, y, symbol) => series.push({id, name,
    type: "scatter", symbol, symbolSize: 14, data: [[x / MIB, ms(y)]]});
  mark("keep", "keep everything", summary.keep_everything_arena_bytes,
      summary.keep_everything_step_ns, "triangle");
  mark("plan", "this plan", summary.budget_bytes, summary.predicted_step_ns,
      "pin");
  if (doc.measured) {
    mark("ran", "this plan, measured", summary.budget_bytes,
        doc.measured.step_ns, "diamond");
  }
  if (doc.recompute_only) {
    mark("recompute", "smallest by recomputing alone",
        doc.recompute_only.budget_bytes, doc.recompute_only.predicted_step_ns,
        "rect");
  }
  return {
    color: ["#4477aa", "#8a8f98", "#ee6677", "#66a061", "#aa4499", "#ccab44",
      "#55b8d8"],
    xAxis: {type: "value", name: "budget (MiB)", scale: true,
      nameLocation: "middle", nameGap: 22},
    yAxis: {type: "value", name: "step (ms)", scale: true,
      axisLabel: {formatter: (v) => Number(v.toPrecision(4)).toString()}},
    grid: {left: 16, right: 24, top: 64, bottom: 32, containLabel: true},
    legend: {data: series.map((s) => s.name)},
    tooltip: {trigger: "item", formatter: (p) =>
      `<b>${echarts.format.encodeHTML(p.seriesName)}</b><br>` +
      `${formatBytes(p.value[0] * MIB)}, ${formatNs(p.value[1] * 1e6)}`},
    series,
  };
}

function showFront() {
  setText("front-text", doc.front.length > 0
    ? `${doc.front.length} plans, each the best that was found at its budget.`
    : "This report is of one plan; loadline sweep gives the whole line.");
  addChart("front-chart", "Step time against budget.", frontOption);
  if (doc.front.length === 0) return;
  const axis = doc.front[0].axis || "";
  const bytes = {hozAlign: "right", sorter: "number",
    formatter: (cell) => formatBytes(cell.getValue())};
  const time = {hozAlign: "right", sorter: "number", formatter: (cell) =>
    cell.getValue() === undefined ? "-" : formatNs(cell.getValue())};
  new Tabulator("#front-table", {
    data: doc.front, layout: "fitDataFill",
    columns: [
      {title: axis, field: "size", visible: axis !== ""},
      {title: "Budget", field: "budget_bytes", ...bytes},
      {title: "Arena", field: "arena_bytes", ...bytes},
      {title: "Step", field: "predicted_step_ns", ...time},
      {title: "Measured", field: "step_ns", ...time,
        visible: doc.front.some((p) => p.step_ns !== undefined)},
      {title: "Proven bound", field: "bound_step_ns", ...time},
      {title: "Recomputing", field: "recompute_ns", ...time},
      {title: "Waiting", field: "stall_ns", ...time},
      {title: "Copied out", field: "d2h_bytes", ...bytes},
      {title: "Host", field: "host_bytes", ...bytes},
    ],
  });
}

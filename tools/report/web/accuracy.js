// The prediction compared with the measurement, and its assumptions.
function errorText(measured, predicted) {
  if (predicted === 0) return "-";
  const error = 100 * (measured - predicted) / predicted;
  return (error >= 0 ? "+" : "") + error.toFixed(1) + " %";
}

function busyNs(spans, lane) {
  return steps.lane.reduce((sum, l, s) =>
    l === lane ? sum + spans.end_ns[s] - spans.start_ns[s] : sum, 0);
}

function accuracyRows() {
  const {measured} = doc;
  const rows = [
    ["arena", summary.arena_bytes, measured.arena_bytes, formatBytes],
    ["step", summary.predicted_step_ns, measured.step_ns, formatNs],
  ];
  LANES.forEach((name, lane) => {
    if (!steps.lane.includes(lane)) return;
    rows.push([name + ", busy", busyNs(steps, lane),
      busyNs(measured.spans, lane), formatNs]);
  });
  return rows;
}

function showAccuracyTable() {
  const table = document.getElementById("accuracy-table");
  const row = (cells, tag) => {
    const tr = table.insertRow();
    cells.forEach((text, i) => tr.append(Object.assign(
        document.createElement(i === 0 ? "th" : tag), {textContent: text})));
  };
  row(["", "predicted", "measured", "error"], "th");
  for (const [name, predicted, measured, format] of accuracyRows()) {
    row([name, format(predicted), format(measured),
      errorText(measured, predicted)], "td");
  }
}

function accuracyOption(colors) {
  const points = [];
  for (let s = 0; s < steps.lane.length; ++s) {
    const predicted = steps.end_ns[s] - steps.start_ns[s];
    const measured =
        doc.measured.spans.end_ns[s] - doc.measured.spans.start_ns[s];
    if (predicted > 0 && measured > 0) {
      points.push([predicted / 1e3, measured / 1e3, s]);
    }
  }
  const all = points.flatMap(([p, m]) => [p, m]);
  const ends = [Math.min(...all), Math.max(...all)];
  const axis = (name) => ({type: "log", name, nameLocation: "middle",
    nameGap: 26, axisLabel: {formatter: (us) => formatNs(us * 1e3)}});
  return {
    xAxis: axis("predicted"),
    yAxis: Object.assign(axis("measured"), {nameGap: 44}),
    grid: {left: 44, right: 24, top: 40, bottom: 36, containLabel: true},
    legend: {data: ["one step of a lane", "equal"]},
    tooltip: {trigger: "item", formatter: (p) => p.value.length < 3 ? "" :
      `<b>${echarts.format.encodeHTML(stepName(p.value[2]))}</b><br>predicted ` +
      `${formatNs(p.value[0] * 1e3)}, measured ${formatNs(p.value[1] * 1e3)}`},
    series: [
      {id: "steps", name: "one step of a lane", type: "scatter", symbolSize: 5,
        color: "#4477aa", data: points},
      {id: "equal", name: "equal", type: "line", symbol: "none",
        color: colors.faint, lineStyle: {type: "dashed"},
        data: points.length === 0 ? [] : ends.map((x) => [x, x])},
    ],
  };
}

// Time by operator, predicted and measured.
function operatorRows() {
  const rows = new Map();
  for (let s = 0; s < steps.lane.length; ++s) {
    const node = steps.node[s];
    const name = node < 0 ? (steps.lane[s] === 0 ? texts[steps.codec[s]] :
        LANES[steps.lane[s]]) :
        texts[nodes.operator[node]] || "node";
    const row = rows.get(name) ||
        {operator: name, runs: 0, predicted_ns: 0, measured_ns: 0};
    row.runs += 1;
    row.predicted_ns += steps.end_ns[s] - steps.start_ns[s];
    row.measured_ns +=
        doc.measured.spans.end_ns[s] - doc.measured.spans.start_ns[s];
    rows.set(name, row);
  }
  return [...rows.values()].map((row) => Object.assign(row, {
    error: row.predicted_ns === 0 ? 0 :
        100 * (row.measured_ns - row.predicted_ns) / row.predicted_ns}));
}

function showAccuracy() {
  const list = document.getElementById("assumptions");
  for (const text of doc.assumptions) {
    list.append(Object.assign(document.createElement("li"),
        {textContent: text}));
  }
  if (!doc.measured) {
    setText("accuracy-text", "This plan was not run. With --data and --steps " +
        "loadline report runs it and shows what was measured.");
    document.getElementById("accuracy-figure").remove();
    document.getElementById("accuracy-table").remove();
    return;
  }
  setText("accuracy-text", `The step time is the median of ` +
      `${doc.measured.steps} steps; single times are of the last one.`);
  showAccuracyTable();
  addChart("accuracy-chart", "Measured against predicted time of each step.",
      accuracyOption);
  const time = {hozAlign: "right", sorter: "number",
    formatter: (cell) => formatNs(cell.getValue())};
  new Tabulator("#operator-table", {
    data: operatorRows(), layout: "fitColumns",
    initialSort: [{column: "measured_ns", dir: "desc"}],
    columns: [
      {title: "Operator", field: "operator", widthGrow: 2, minWidth: 140},
      {title: "Runs", field: "runs", hozAlign: "right", sorter: "number"},
      {title: "Predicted", field: "predicted_ns", ...time},
      {title: "Measured", field: "measured_ns", ...time},
      {title: "Error", field: "error", hozAlign: "right", sorter: "number",
        formatter: (cell) => (cell.getValue() >= 0 ? "+" : "") +
          cell.getValue().toFixed(1) + " %"},
    ],
  });
}

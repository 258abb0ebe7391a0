// Timelines of the compute lane and both copy lanes, predicted and measured.
const LANES = ["compute", "copy out", "copy in"];
const LANE_PARTS = [
  ["forward", "#4477aa"], ["backward", "#ccab44"], ["update", "#66a061"],
  ["recomputed", "#aa4499"], ["codec", "#882255"], ["compute", "#4477aa"], ["copy", "#55b8d8"],
  ["waiting", STALL_COLOR],
];

function partOf(s) {
  if (steps.lane[s] !== 0) return "copy";
  if (steps.again[s]) return "recomputed";
  if (steps.node[s] < 0) return "codec";
  const phase = texts[nodes.phase[steps.node[s]]];
  if (phase === "loss") return "forward";
  return phase || "compute";
}

// Gaps of the compute lane, up to the end of the step.
function stallsOf(spans) {
  const gaps = [];
  let end = 0, last = 0;
  for (let s = 0; s < steps.lane.length; ++s) {
    last = Math.max(last, spans.end_ns[s]);
    if (steps.lane[s] !== 0) continue;
    if (spans.start_ns[s] > end) gaps.push([end, spans.start_ns[s]]);
    end = Math.max(end, spans.end_ns[s]);
  }
  if (last > end) gaps.push([end, last]);
  return gaps;
}

// Rows from the bottom: for each lane the measured row, then the predicted one.
function laneRows() {
  const rows = [];
  for (const lane of [2, 1, 0]) {
    if (doc.measured) rows.push([LANES[lane] + ", measured", lane, true]);
    rows.push([LANES[lane] + (doc.measured ? ", predicted" : ""), lane, false]);
  }
  return rows;
}

function laneItems() {
  const items = Object.fromEntries(LANE_PARTS.map(([name]) => [name, []]));
  // Shorter waits would be drawn wider than they are and hide other steps.
  const smallest = summary.predicted_step_ns / 1000;
  laneRows().forEach(([, lane, measured], row) => {
    const spans = measured ? doc.measured.spans : steps;
    for (let s = 0; s < steps.lane.length; ++s) {
      if (steps.lane[s] !== lane) continue;
      items[partOf(s)].push(
          [spans.start_ns[s] / 1e6, spans.end_ns[s] / 1e6, row, s]);
    }
    if (lane !== 0) return;
    for (const [from, to] of stallsOf(spans)) {
      if (to - from < smallest) continue;
      items.waiting.push([from / 1e6, to / 1e6, row, -1]);
    }
  });
  return items;
}

function lanesOption() {
  const items = laneItems();
  const rows = laneRows();
  const series = LANE_PARTS.filter(([name]) => items[name].length > 0)
      .map(([name, color]) => ({
        type: "custom", id: name, name, color, data: items[name],
        encode: {x: [0, 1], y: 2}, progressive: 4000,
        renderItem: (params, api) => {
          const half = api.size([0, 1])[1] * 0.38;
          const from = api.coord([api.value(0), api.value(2)]);
          const to = api.coord([api.value(1), api.value(2)]);
          const shape = echarts.graphic.clipRectByRect(
              {x: from[0], y: from[1] - half,
                width: Math.max(to[0] - from[0], 0.4), height: 2 * half},
              {x: params.coordSys.x, y: params.coordSys.y,
                width: params.coordSys.width, height: params.coordSys.height});
          return shape && {type: "rect", shape, style: {fill: color}};
        },
      }));
  return {
    xAxis: {type: "value", min: 0, name: "time (ms)", nameLocation: "middle",
      nameGap: 22,
      axisLabel: {formatter: (ms) => Number(ms.toPrecision(4)).toString()}},
    yAxis: {type: "category", data: rows.map(([name]) => name),
      splitLine: {show: false}},
    dataZoom: zoom(false),
    legend: {data: series.map((s) => s.name)},
    tooltip: {trigger: "item", formatter: (p) => {
      const [from, to, , s] = p.value;
      return `<b>${echarts.format.encodeHTML(s < 0 ? "waiting" : stepName(s))}` +
        `</b><br>${p.seriesName}, ${formatNs((to - from) * 1e6)} from ` +
        formatNs(from * 1e6);
    }},
    series,
  };
}

function showLanes() {
  const predicted = stallsOf(steps).reduce((sum, [a, b]) => sum + b - a, 0);
  let text = `Predicted: compute waits ${formatNs(predicted)} of ` +
      `${formatNs(summary.predicted_step_ns)}.`;
  if (doc.measured) {
    const waited =
        stallsOf(doc.measured.spans).reduce((sum, [a, b]) => sum + b - a, 0);
    text += ` Measured, in the last step run: ${formatNs(waited)} between ` +
        "kernels, the start of each included.";
  }
  setText("lanes-text", text);
  addChart("lanes-chart", text, lanesOption);
}

// Address over time: one rectangle per buffer.
function arenaOption(colors) {
  const byKind = doc.kinds.slice(0, COPIES).map(() => []);
  for (let b = 0; b < buffers.value.length; ++b) {
    if (buffers.bytes[b] === 0) continue;
    byKind[bufferKind(b)].push([buffers.start_ns[b] / 1e6,
      buffers.end_ns[b] / 1e6, buffers.offset[b],
      buffers.offset[b] + buffers.bytes[b], b]);
  }
  const series = byKind.map((data, k) => ({
    type: "custom", id: "kind" + k, name: doc.kinds[k], color: KIND_COLORS[k],
    data, encode: {x: [0, 1], y: [2, 3]}, progressive: 4000,
    renderItem: (params, api) => {
      const item = rectangle(params, api, KIND_COLORS[k], api.value(2),
          api.value(3));
      if (item) {
        Object.assign(item.style, {stroke: colors.paper,
          lineWidth: item.shape.height > 4 && item.shape.width > 4 ? 0.5 : 0});
      }
      return item;
    },
  }));
  series.push({id: "marks", type: "line", data: [], silent: true,
    markLine: {symbol: "none", silent: true, data: [{yAxis: summary.budget_bytes,
      label: {formatter: "budget", position: "insideEndBottom",
        color: colors.ink},
      lineStyle: {color: STALL_COLOR, type: "solid", width: 2}}]}});
  return {
    xAxis: {type: "value", min: 0, max: summary.predicted_step_ns / 1e6 || 1,
      name: "time (ms, predicted)", nameLocation: "middle", nameGap: 22,
      axisLabel: {formatter: (ms) => Number(ms.toPrecision(4)).toString()}},
    yAxis: {type: "value", min: 0, max: summary.budget_bytes,
      name: "address", axisLabel: {formatter: formatBytes}},
    dataZoom: zoom(true),
    legend: {data: doc.kinds.slice(0, COPIES)},
    tooltip: {trigger: "item", formatter: (p) => {
      const b = p.value[4];
      return [`<b>${echarts.format.encodeHTML(bufferName(b))}</b>`,
        doc.kinds[bufferKind(b)] + ", " + formatBytes(buffers.bytes[b]),
        `address ${buffers.offset[b].toLocaleString("en")} to ` +
          (buffers.offset[b] + buffers.bytes[b]).toLocaleString("en"),
        `${formatNs(buffers.start_ns[b])} to ${formatNs(buffers.end_ns[b])}`,
      ].join("<br>");
    }},
    series,
  };
}

function showArena() {
  if (!doc.addresses) {
    setText("arena-text", "This problem has no addresses.");
    document.getElementById("arena-chart").remove();
    return;
  }
  addChart("arena-chart", `The arena: ${buffers.value.length} buffers by ` +
      "address and time.", arenaOption);
}

// Bytes over program order, by kind; selecting a position lists its tensors.
let selectedSample = -1;
let aliveTable = null;

// The budget and the selected position.
function memoryMarks(colors) {
  const marks = [{yAxis: summary.budget_bytes + reservedBytes, name: "budget",
    label: {formatter: "budget " + formatBytes(summary.budget_bytes),
      position: "insideStartTop", color: colors.ink},
    lineStyle: {color: STALL_COLOR, type: "solid", width: 2}}];
  if (selectedSample >= 0) {
    marks.push({xAxis: selectedSample, name: "selected",
      label: {show: false}, lineStyle: {color: colors.ink, type: "dashed"}});
  }
  return {id: "marks", type: "line", data: [], silent: true,
    markLine: {symbol: "none", data: marks, silent: true}};
}

function memoryOption(colors) {
  const line = (extra) => Object.assign({type: "line", step: "middle",
    stack: "bytes", symbol: "none", lineStyle: {width: 0},
    areaStyle: {opacity: 0.9}, emphasis: {disabled: true}}, extra);
  const series = stackByKind.map((row, k) => line({
    id: "kind" + k, name: doc.kinds[k], color: KIND_COLORS[k],
    data: row}));
  if (reservedBytes > 0) {
    series.unshift(line({id: "outside", name: "outside the plan",
      color: OUTSIDE_COLOR,
      data: samples.step.map(() => reservedBytes)}));
  }
  const budget = summary.budget_bytes + reservedBytes;
  const total = (i) => samples.live_bytes[i] + reservedBytes;
  const highest = 1.08 * Math.max(budget, total(peakSample));
  series.push(memoryMarks(colors));
  series.push({id: "peak", type: "scatter", symbolSize: 11, name: "peak",
    color: colors.ink, data: [[peakSample, total(peakSample)]],
    label: {show: true, position: "top", color: colors.ink,
      formatter: "peak " + formatBytes(samples.live_bytes[peakSample])}});
  return {
    // A category axis, because ECharts stacks nothing over two value axes.
    xAxis: {type: "category", data: samples.step.map((_, i) => i),
      boundaryGap: false, name: "step of the compute lane",
      nameLocation: "middle", nameGap: 22, splitLine: {show: false}},
    yAxis: {type: "value", min: 0, max: highest,
      interval: 2 ** Math.ceil(Math.log2(Math.max(highest, 8) / 8)), axisLabel: {formatter: formatBytes, showMaxLabel: false}},
    grid: {left: 16, right: 24, top: 48, bottom: 60, containLabel: true},
    dataZoom: zoom(false),
    legend: {data: series.filter((s) => s.stack).map((s) => s.name)},
    tooltip: {trigger: "axis", formatter: (items) => {
      const i = Number(items[0].axisValue);
      const rows = items.filter((p) => p.seriesName !== "peak" && p.value > 0)
          .map((p) => `${p.marker}${echarts.format.encodeHTML(p.seriesName)} ` +
              formatBytes(p.value));
      return [`<b>${i}: ${echarts.format.encodeHTML(stepName(samples.step[i]))}` +
        `</b>`, ...rows.reverse(), `live ${formatBytes(samples.live_bytes[i])}`]
          .join("<br>");
    }},
    series,
  };
}

function selectSample(entry, sample) {
  selectedSample = Math.min(Math.max(sample, 0), sampleCount - 1);
  showAlive();
  entry.show();
  entry.chart.setOption({series: [memoryMarks(themeColors())]});
}

function showAlive() {
  const rows = aliveAt(selectedSample);
  const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
  const where = selectedSample === peakSample ? "At the peak" :
      "At step " + selectedSample;
  setText("alive-title", `${where}, ${stepName(samples.step[selectedSample])}: ` +
      `${rows.length} buffers of ${formatBytes(bytes)} ` +
      `(${bytes.toLocaleString("en")} bytes)`);
  if (aliveTable) {
    aliveTable.replaceData(rows);
  } else {
    aliveTable = makeAliveTable(rows);
  }
}

function makeAliveTable(rows) {
  return new Tabulator("#alive-table", {
    data: rows, height: "18rem", layout: "fitColumns",
    initialSort: [{column: "bytes", dir: "desc"}],
    columns: [
      {title: "Tensor", field: "name", widthGrow: 3, minWidth: 140},
      {title: "Bytes", field: "bytes", hozAlign: "right", sorter: "number",
        formatter: (cell) => formatBytes(cell.getValue()), bottomCalc: "sum",
        bottomCalcFormatter: (cell) => formatBytes(cell.getValue()),
        minWidth: 90},
      {title: "Kind", field: "kind", minWidth: 100},
      {title: "Action", field: "action", minWidth: 90},
      {title: "Module", field: "module", widthGrow: 2, minWidth: 110},
    ],
  });
}

function listenForClicks(entry) {
  const x = (sample) => entry.chart.convertToPixel({xAxisIndex: 0}, sample);
  entry.chart.getZr().on("click", (event) => {
    const point = [event.offsetX, event.offsetY];
    if (!entry.chart.containPixel({gridIndex: 0}, point)) return;
    const near = Math.abs(x(peakSample) - event.offsetX) <= 6;
    selectSample(entry, near ? peakSample : Math.round(
        entry.chart.convertFromPixel({xAxisIndex: 0}, event.offsetX)));
  });
}

function showMemory() {
  selectedSample = peakSample;
  showAlive();
  const entry = addChart("memory-chart",
      `Memory against program order: the peak is ` +
      `${formatBytes(samples.live_bytes[peakSample] || 0)} of a budget of ` +
      `${formatBytes(summary.budget_bytes)}. Arrow keys move, P goes to the ` +
      `peak.`, memoryOption, listenForClicks);
  entry.element.addEventListener("keydown", (event) => {
    const by = event.shiftKey ? 10 : 1;
    const at = selectedSample < 0 ? peakSample : selectedSample;
    const to = {ArrowLeft: at - by, ArrowRight: at + by, Home: 0,
      End: sampleCount - 1, p: peakSample, P: peakSample}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    selectSample(entry, to);
  });
  document.getElementById("go-to-peak").addEventListener("click",
      () => selectSample(entry, peakSample));
}

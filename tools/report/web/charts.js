// Charts that adapt to the theme, the window and the printer. A section passes a
// function from colours to an ECharts option; everything else is done here.
const KIND_COLORS =
    ["#4477aa", "#66a061", "#ee6677", "#ccab44", "#aa4499", "#55b8d8"];
const OUTSIDE_COLOR = "#8a8f98";
const STALL_COLOR = "#d1495b";
const charts = [];

function themeColors(light) {
  if (light) return {ink: "#000", faint: "#333", line: "#bbb", paper: "#fff"};
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue("--" + name).trim();
  return {ink: of("ink"), faint: of("faint"), line: of("line"),
    paper: of("paper")};
}

function withTheme(option, colors) {
  const axis = (a) => Object.assign({
    axisLine: {lineStyle: {color: colors.faint}},
    nameTextStyle: {color: colors.faint},
    splitLine: {lineStyle: {color: colors.line}},
  }, a, {axisLabel: Object.assign({color: colors.faint, hideOverlap: true},
      a.axisLabel)});
  return Object.assign({
    animation: false,
    aria: {enabled: true},
    textStyle: {color: colors.ink},
    grid: {left: 16, right: 24, top: 48, bottom: 64, containLabel: true},
  }, option, {
    xAxis: axis(option.xAxis), yAxis: axis(option.yAxis),
    legend: Object.assign({top: 0, type: "scroll",
      textStyle: {color: colors.ink}, pageTextStyle: {color: colors.ink}},
    option.legend),
    tooltip: Object.assign({confine: true, backgroundColor: colors.paper,
      borderColor: colors.line, textStyle: {color: colors.ink, fontSize: 12}},
    option.tooltip),
  });
}

// Zoom by wheel and by a slider. `y`: zooms the vertical axis as well.
function zoom(y) {
  const bars = [{type: "inside", xAxisIndex: 0, filterMode: "weakFilter"},
    {type: "slider", xAxisIndex: 0, filterMode: "weakFilter", height: 18,
      bottom: 12, showDetail: false, showDataShadow: false}];
  if (y) {
    bars.push({type: "inside", yAxisIndex: 0, filterMode: "weakFilter",
      zoomOnMouseWheel: "shift", moveOnMouseMove: true});
  }
  return bars;
}

// A rectangle of a custom series, from [x0, x1, y0, y1] of its data.
function rectangle(params, api, fill, y0, y1) {
  const from = api.coord([api.value(0), y0]);
  const to = api.coord([api.value(1), y1]);
  const shape = echarts.graphic.clipRectByRect(
      {x: from[0], y: to[1], width: Math.max(to[0] - from[0], 0.5),
        height: Math.max(from[1] - to[1], 0.5)},
      {x: params.coordSys.x, y: params.coordSys.y,
        width: params.coordSys.width, height: params.coordSys.height});
  return shape && {type: "rect", shape, style: {fill}};
}

function saveAs(name, url) {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

function chartSvg(entry) {
  const box = entry.element.getBoundingClientRect();
  const chart = echarts.init(null, null, {renderer: "svg", ssr: true,
    width: box.width || 900, height: box.height || 380});
  const colors = themeColors(true);
  const option = withTheme(entry.build(colors), colors);
  option.dataZoom = [];
  option.backgroundColor = "#fff";
  chart.setOption(option);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

function addSaveButtons(entry, name) {
  const line = document.createElement("p");
  line.className = "save";
  const button = (label, act) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = label;
    b.setAttribute("aria-label", `Save the chart ${name} as ${label}`);
    b.addEventListener("click", act);
    line.append(b, " ");
  };
  button("SVG", () => saveAs(name + ".svg", URL.createObjectURL(
      new Blob([chartSvg(entry)], {type: "image/svg+xml"}))));
  button("PNG", () => {
    entry.show();
    saveAs(name + ".png", entry.chart.getDataURL(
        {pixelRatio: 2, backgroundColor: themeColors().paper}));
  });
  entry.element.after(line);
}

// A chart is drawn when it becomes visible, so that a large page opens quickly;
// `ready` is called then.
function addChart(id, label, build, ready) {
  const element = document.getElementById(id);
  element.tabIndex = 0;
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label);
  const paper = document.createElement("div");
  paper.className = "on-paper";
  element.after(paper);
  const entry = {element, paper, build, chart: null};
  entry.draw = () => {
    if (!entry.chart) return;
    const colors = themeColors();
    entry.chart.setOption(withTheme(build(colors), colors), {notMerge: true});
    element.setAttribute("aria-label", label);
  };
  entry.show = () => {
    if (entry.chart) return;
    entry.chart = echarts.init(element);
    entry.draw();
    if (ready) ready(entry);
  };
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    observer.disconnect();
    entry.show();
  }, {rootMargin: "200px"}).observe(element);
  new ResizeObserver(() => {
    if (entry.chart && element.clientWidth > 0) entry.chart.resize();
  }).observe(element);
  charts.push(entry);
  addSaveButtons(entry, id.replace("-chart", ""));
  return entry;
}

function redrawCharts() { for (const entry of charts) entry.draw(); }

// For printing, charts are drawn as SVG in the light colours.
function drawOnPaper(printing) {
  for (const entry of charts) {
    entry.paper.innerHTML = printing ? chartSvg(entry) : "";
  }
}

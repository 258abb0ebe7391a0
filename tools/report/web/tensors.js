// Every tensor with its action and the reason.
function tensorRows() {
  return values.name.map((name, v) => {
    const module = texts[values.module[v]];
    const node = values.node[v];
    return {
      id: v, name, bytes: values.bytes[v], kind: doc.kinds[values.kind[v]],
      action: texts[values.action[v]], reason: texts[values.reason[v]], module,
      operator: node < 0 ? "" : texts[nodes.operator[node]],
      layer: layerOf(module),
    };
  });
}

// Tabulator takes a tooltip's text for HTML.
function textElement(text) {
  const element = document.createElement("span");
  element.textContent = text;
  return element;
}

function showTensors() {
  const filter = {headerFilter: "input"};
  const layerHeader = (layer, count, rows) => {
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
    const repeats = new Set(rows.map((row) => row.module)).size;
    const times = repeats > 1 ? ` × ${repeats}` : "";
    return echarts.format.encodeHTML((layer || "(no module)") + times) +
        `: ${count} tensors, ${formatBytes(bytes)}`;
  };
  const table = new Tabulator("#tensor-table", {
    data: tensorRows(), height: "30rem", layout: "fitColumns",
    initialSort: [{column: "bytes", dir: "desc"}],
    groupBy: "layer", groupStartOpen: false, groupHeader: layerHeader,
    printAsHtml: true,
    printRowRange: () => table.getRows("active").slice(0, 100),
    columns: [
      {title: "Tensor", field: "name", widthGrow: 3, minWidth: 150, ...filter},
      {title: "Bytes", field: "bytes", hozAlign: "right", sorter: "number",
        formatter: (cell) => formatBytes(cell.getValue()), minWidth: 100,
        headerFilter: "number", headerFilterPlaceholder: "at least",
        headerFilterFunc: ">="},
      {title: "Kind", field: "kind", minWidth: 105, ...filter},
      {title: "Action", field: "action", minWidth: 100, ...filter},
      {title: "Reason", field: "reason", widthGrow: 4, minWidth: 180,
        tooltip: (event, cell) => textElement(cell.getValue()), ...filter},
      {title: "Module", field: "module", widthGrow: 2, minWidth: 120, ...filter},
      {title: "Operator", field: "operator", minWidth: 110, ...filter},
    ],
  });
  document.getElementById("group").addEventListener("change", (event) =>
    table.setGroupBy(event.target.checked ? "layer" : false));
  document.getElementById("csv").addEventListener("click",
      () => table.download("csv", "tensors.csv"));
}

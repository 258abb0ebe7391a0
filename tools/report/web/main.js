// Sections from top to bottom, then theme and printer.
showSummary();
if (sampleCount > 0) showMemory();
showArena();
showLanes();
showFront();
showTensors();
showAccuracy();

document.getElementById("theme").addEventListener("change", (event) => {
  const theme = event.target.value;
  if (theme) {
    document.documentElement.dataset.theme = theme;
  } else {
    delete document.documentElement.dataset.theme;
  }
  redrawCharts();
});
matchMedia("(prefers-color-scheme: dark)")
    .addEventListener("change", redrawCharts);
document.getElementById("print").addEventListener("click",
    () => window.print());
window.addEventListener("beforeprint", () => drawOnPaper(true));
window.addEventListener("afterprint", () => drawOnPaper(false));
matchMedia("print").addEventListener("change",
    (event) => drawOnPaper(event.matches));
document.body.dataset.ready = "yes";

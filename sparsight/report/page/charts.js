// Draws the charts of the page and redraws them when the colour scheme changes. Sets the attribute data-charts
// of the root element to the number of charts drawn once all are there.
(function () {
  "use strict";
  const specs = JSON.parse(document.getElementById("chart-specs").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const font = style.getPropertyValue("--font").trim();
    const quiet = colour("--quiet"), line = colour("--line");
    return {
      background: "transparent",
      font: font,
      view: { stroke: null },
      axis: {
        labelColor: quiet, titleColor: quiet, gridColor: line, domainColor: line, tickColor: line,
        labelFontSize: 11, titleFontSize: 11, titleFontWeight: "normal", labelFlush: true,
      },
      axisX: { grid: false, tickCount: 6 },
      axisY: { domain: false, ticks: false, labelPadding: 6, tickCount: 5 },
      legend: {
        labelColor: colour("--text"), titleColor: quiet, labelFontSize: 11, titleFontSize: 11,
        titleFontWeight: "normal", symbolStrokeWidth: 3, labelLimit: 220,
      },
    };
  }

  async function drawAll() {
    const config = theme();
    let drawn = 0;
    for (const holder of document.querySelectorAll("[data-chart]")) {
      try {
        const spec = specs[Number(holder.dataset.chart)];
        const drawing = await vegaEmbed(holder, spec, {
          mode: "vega-lite", renderer: "svg", ast: true, config: config, tooltip: { theme: dark.matches ? "dark" : "light" },
          actions: { export: true, source: false, compiled: false, editor: false },
        });
        if (spec.usermeta && spec.usermeta.photos) window.sparsightPhotos(holder, drawing.view);
        drawn += 1;
      } catch (error) {
        holder.textContent = "This chart could not be drawn.";
        window.sparsightProblem(error);
      }
    }
    document.documentElement.dataset.charts = String(drawn);
  }

  dark.addEventListener("change", drawAll);
  // A chart drawn while its section was closed has no width yet.
  for (const section of document.querySelectorAll("details"))
    section.addEventListener("toggle", () => window.dispatchEvent(new Event("resize")));
  drawAll();
})();

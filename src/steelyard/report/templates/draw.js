// Decompresses plotly.js and draws the figures one by one while the browser is idle. They are not printed.
(async () => {
  const holders = new Map([...document.querySelectorAll(".plot")].map((holder) => [holder.dataset.figure, holder]));
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const packed = document.getElementById("library").textContent.trim();

  const fail = (reason) => {
    for (const holder of holders.values()) holder.textContent = reason;
    document.documentElement.classList.add("undrawn");
  };
  if (!packed) return;
  if (!("DecompressionStream" in window)) return fail("This browser is too old for the plots. All numbers are also in the tables.");

  try {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  } catch (error) {
    return fail(`The plot could not be drawn (${error}). All numbers are also in the tables.`);
  }

  // Touch scrolls the page, a mouse zooms the plot.
  const touch = window.matchMedia("(pointer: coarse)").matches;
  const waiting = [...figures];
  const draw = () => {
    const figure = waiting.shift();
    const holder = holders.get(figure.name);
    holder.textContent = "";
    if (touch) figure.layout.dragmode = false;
    window.Plotly.newPlot(holder, figure.data, figure.layout, { responsive: true, displaylogo: false, displayModeBar: false });
  };
  const later = window.requestIdleCallback ?? ((work) => setTimeout(work, 1));
  const drawOne = () => {
    if (!waiting.length) return;
    draw();
    later(drawOne);
  };
  later(drawOne);

  // A plot in a fold has no width until the fold is opened.
  document.addEventListener("toggle", (event) => {
    for (const holder of event.target.querySelectorAll(".js-plotly-plot")) window.Plotly.Plots.resize(holder);
  }, true);
})();

"use strict";
// Small comforts on top of pages that are complete without them: theme, copy, explorable charts.
// Loaded in the head so that a chosen theme never flashes; everything else waits for the document.
document.documentElement.classList.add("js");
try {
  const theme = localStorage.getItem("theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* private windows refuse storage */ }
addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement;
  const announce = (text) => { const live = document.getElementById("live"); if (live) live.textContent = text; };

  for (const button of document.querySelectorAll("[data-theme-switch]")) {
    button.addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch { /* private windows refuse storage */ }
      document.dispatchEvent(new Event("themechange"));
    });
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const target = document.getElementById(button.dataset.copy);
      const text = target ? target.textContent.trim() : location.href;
      try { await navigator.clipboard.writeText(text); announce("Copied"); button.textContent = "Copied"; }
      catch { announce("Copying is not allowed here; select the text instead"); button.textContent = "Select and copy"; }
    });
  }

  // Empty fields and defaults stay out of the address bar.
  for (const form of document.querySelectorAll("form[data-clean]")) {
    form.addEventListener("submit", () => {
      for (const field of form.elements) {
        if (field.name && (field.value === "" || field.value === field.dataset.default)) field.disabled = true;
      }
    });
  }
  addEventListener("pageshow", () => { for (const field of document.querySelectorAll("form[data-clean] :disabled")) field.disabled = false; });

  // Name completion: the first page carries the lists, the others fetch them when a field is entered.
  for (const field of document.querySelectorAll("input[list$='-names']")) {
    field.addEventListener("focus", async () => {
      if (document.getElementById("hardware-names")) return;
      const box = document.createElement("div");
      document.body.append(box);
      for (const name of ["hardware", "model", "engine"]) {
        const list = document.createElement("datalist");
        list.id = `${name}-names`;
        box.append(list);
      }
      const names = await (await fetch("/names.json")).json();
      for (const [kind, rows] of Object.entries(names)) {
        const list = document.getElementById(`${kind}-names`);
        for (const [value, text] of rows) { const option = new Option(text, value); list.append(option); }
      }
    }, { once: true });
  }

  for (const select of document.querySelectorAll("select[data-submit]")) {
    select.addEventListener("change", () => select.form.requestSubmit());
  }

  // Explore: plotly.js is loaded only when asked for, and replaces the drawing in a box of equal size.
  // plotly.js writes style attributes, which the content policy allows through the object model only, and brings
  // a style element for maps, which it would block with an error: maps are not drawn here, so it may stay inert.
  const create = document.createElement;
  const keepPolicy = () => {
    document.createElement = (name, ...rest) => create.call(document, name === "style" ? "template" : name, ...rest);
    const set = Element.prototype.setAttribute;
    Element.prototype.setAttribute = function (name, value) {
      if (name === "style") this.style.cssText = value; else set.call(this, name, value);
    };
  };
  const load = (plot) => {
    if (window.Plotly) return Promise.resolve();
    keepPolicy();
    return new Promise((resolve, reject) => {
      const style = document.createElement("link");
      style.rel = "stylesheet"; style.id = "plotly.js-style-global"; style.href = plot.dataset.style;
      const script = document.createElement("script");
      script.src = plot.dataset.script; script.onload = () => { document.createElement = create; resolve(); }; script.onerror = reject;
      style.onload = style.onerror = () => document.head.append(script);
      document.head.append(style);
    });
  };
  const draw = async (button) => {
    const figure = button.closest("figure");
    announce("Updating…");
    button.disabled = true;
    try {
      const [spec] = await Promise.all([fetch(button.dataset.explore).then((answer) => { if (!answer.ok) throw new Error(answer.status); return answer.json(); }), load(button)]);
      const box = figure.querySelector(".plot") || figure.insertBefore(document.createElement("div"), button);
      const svg = [...figure.querySelectorAll("svg.ch")].find((one) => getComputedStyle(one).display !== "none");
      box.className = "plot";
      if (svg) { spec.layout.height = Math.max(320, Math.round(svg.getBoundingClientRect().height)); }
      const css = getComputedStyle(root); const colour = (name) => css.getPropertyValue(name).trim();
      const text = JSON.stringify(spec).replace(/"var\((--[a-z0-9]+)\)"/g, (_, name) => JSON.stringify(colour(name)));
      const ready = JSON.parse(text);
      figure.querySelectorAll("svg.ch").forEach((one) => { one.setAttribute("hidden", ""); });
      await window.Plotly.react(box, ready.data, ready.layout, { displaylogo: false, responsive: true, modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]], toImageButtonOptions: { format: "svg" } });
      button.hidden = true;
      announce("Chart ready");
      document.addEventListener("themechange", () => draw(button), { once: true });
    } catch { announce("The explorable chart could not be loaded; the drawing and its table remain"); }
    button.disabled = false;
  };
  for (const button of document.querySelectorAll("[data-explore]")) {
    button.addEventListener("click", () => draw(button));
  }
});

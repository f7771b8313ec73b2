"use strict";
// What pages share that tint the patches of a picture by the experts that computed them: this one, and that of runtime/web. A
// page has `routings`, and elements of the names that are used here.

const CANVAS_SIDE = 448;
const element = (id) => document.getElementById(id);

// One line, in place of what was there; without text: none.
function show(id, text) {
  element(id).textContent = text;
  element(id).hidden = !text;
}

// Runs work that begins with a choice of the user; what it throws is the page's error line.
async function attempt(work) {
  show("error", "");
  try {
    await work();
  } catch (error) {
    show("error", String(error?.message ?? error).split("\n")[0]);
  }
}

function fillLayers() {
  const before = element("layer").selectedIndex;
  element("layer").replaceChildren(...routings.map((routing) => new Option(routing.layer)));
  element("layer").selectedIndex = routings.length ? Math.min(Math.max(before, 0), routings.length - 1) : -1;
  element("controls").hidden = routings.length === 0;
}

// Neighbours in number are far apart in hue, and shades alternate.
function colour(expert, experts) {
  const hue = experts <= 12 ? 360 * ((5 * expert) % 12) / 12 : (expert * 137.508) % 360;
  return `hsl(${hue} 85% ${[45, 62, 32][expert % 3]}%)`;
}

function tint(context, routing, experts) {
  const [rows, columns] = routing.grid, strength = element("strength").value / 100;
  const w = context.canvas.width / columns, h = context.canvas.height / rows;
  context.font = `${Math.min(16, 0.5 * h)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  experts.forEach((expert, patch) => {
    if (expert < 0 || strength === 0) return;
    const x = Math.round((patch % columns) * w), y = Math.round(Math.floor(patch / columns) * h);
    const right = Math.round((patch % columns + 1) * w), bottom = Math.round((Math.floor(patch / columns) + 1) * h);
    context.globalAlpha = strength;
    context.fillStyle = colour(expert, routing.experts);
    context.fillRect(x, y, right - x, bottom - y);
    context.globalAlpha = 1;
    if (Math.min(w, h) < 16) return;
    context.lineWidth = 3;
    context.strokeStyle = "#000";
    context.fillStyle = "#fff";
    context.strokeText(expert, (x + right) / 2, (y + bottom) / 2);
    context.fillText(expert, (x + right) / 2, (y + bottom) / 2);
  });
}

// note: what else is said of the patches.
function describe(routing, experts, note = "") {
  const reason = !routing ? "This model has no layers with experts."
    : routing.chosen.every((choices) => choices.length === 0) ? "This layer mixes tokens: no patch has an expert of its own."
    : experts.length === 0 ? "The tokens of this layer have no grid." : "";
  show("note", reason || `Each patch has the colour of the expert with its largest gate.${note}`);
  const counts = new Map();
  for (const expert of experts) counts.set(expert, (counts.get(expert) ?? 0) + 1);
  const shown = reason ? [] : Array.from(counts.keys()).sort((a, b) => a - b);
  element("legend").replaceChildren(...shown.map((expert) => {
    const item = document.createElement("li"), sample = document.createElement("i");
    item.dataset.expert = expert;
    if (expert >= 0) sample.style.background = colour(expert, routing.experts);
    item.append(sample, `${expert < 0 ? "none" : `expert ${expert}`}: ${counts.get(expert)} of ${experts.length}`);
    return item;
  }));
}

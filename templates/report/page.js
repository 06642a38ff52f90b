"use strict";
// Evaluates the numbers of this page at the extents chosen, in exact integers, as tcgen does.
const data = JSON.parse(document.getElementById("data").textContent);
const extents = Object.fromEntries(Object.entries(data.extents).map(([s, n]) => [s, BigInt(n)]));
const frame = {width: 860, height: 260, left: 78, right: 12, top: 10, bottom: 40};
const larger = (a, b) => (a > b ? a : b);
const total = (list) => list.reduce((sum, n) => sum + n, 0n);

function polynomial([denominator, terms]) {
  const value = total(terms.map(([coefficient, powers]) =>
    powers.reduce((n, [space, power]) => n * extents[space] ** BigInt(power), BigInt(coefficient))));
  return value / BigInt(denominator);
}

function product(factors) {
  return factors.reduce((all, [spaces, fixed, sign]) => {
    let n = total(spaces.map((space) => extents[space]));
    if (fixed !== null && (!spaces.length || BigInt(fixed) < n)) n = BigInt(fixed);
    return all * (sign ? (n * (n + BigInt(sign))) / 2n : n);
  }, 1n);
}

const least = (list) => list.reduce((a, b) => (a < b ? a : b));

// Memory in which one thread packs blocks of contractions, as in tcgen/artifact/kernel_abi.py.
function packed([item, parts, staged, ...groups]) {
  const [depth, left, buffers, right, rows, columns, spare, line] = data.peak.packing.map(BigInt);
  const [m, n, k] = groups.map(product);
  const pieces = BigInt(parts), one = BigInt(item);
  const deep = least([depth / pieces, larger(k, 1n)]);
  return [
    least([(staged ? buffers : left) / (pieces * pieces), (3n * m + spare) * deep]) * one * pieces,
    least([right, (n + spare) * deep]) * one,
    16n * (least([rows, m + spare]) + least([columns, n + spare]) + deep),
  ].map((count) => ((count + line - 1n) / line) * line).reduce((a, b) => a + b);
}

// Scratch of a kernel on a GPU, as in tcgen/runtime/memory/gpu_usage.py: what its blocks leave for a second
// pass, and the private arrays of those that run at one time where they do not fit shared memory.
function scratch([strips, most, part, privates]) {
  const [shared, spilled, line] = data.peak.spilling.map(BigInt);
  const up = (n, step) => ((n + step - 1n) / step) * step;
  const all = strips.map(([factors, tile]) => up(product(factors), BigInt(tile)) / BigInt(tile));
  const counted = all.reduce((a, b) => a * b, 1n);
  const blocks = most === null ? counted : least([counted, BigInt(most)]);
  const own = total(privates.map((one) => up(bytes(one), line)));
  return blocks * BigInt(part) + (own > shared ? least([blocks, spilled]) * own : 0n);
}

function bytes([factors, item, , , , contractions, grid]) {
  if (contractions) return contractions.map(packed).reduce(larger);
  return grid ? scratch(grid) : product(factors) * BigInt(item);
}

// Top of an arena in which each block gets the lowest place that is free when its turn comes.
function firstFit(blocks) {
  const placed = [];
  for (const block of blocks) {
    const near = placed.filter((p) => p.first <= block.last && block.first <= p.last);
    near.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
    let start = 0n;
    for (const other of near) {
      if (start + block.bytes <= other.start) break;
      start = larger(start, other.start + other.bytes);
    }
    placed.push({...block, start});
  }
  return placed.map((p) => p.start + p.bytes).reduce(larger, 0n);
}

// Bytes of an arena: the best of four orders of first fit, as in tcgen/artifact/arena.py.
function arena(blocks, alignment, granted) {
  const step = BigInt(alignment);
  const wanted = blocks.map((b) => ({
    bytes: ((bytes(b) + step - 1n) / step) * step, first: b[2], last: b[3], rank: b[4]}));
  const falling = (a, b) => (a.bytes < b.bytes ? 1 : a.bytes > b.bytes ? -1 : 0);
  const extent = least([
    falling,
    (a, b) => a.first - b.first || falling(a, b),
    (a, b) => (a.first - a.last) - (b.first - b.last),
    (a, b) => a.rank - b.rank || falling(a, b),
  ].map((order) => firstFit([...wanted].sort(order))));
  return extent ? extent + larger(0n, step - BigInt(granted)) : 0n;
}

function peak() {
  const {kept, phases, outputs, alignment, granted} = data.peak;
  const size = (blocks) => arena(blocks, alignment, granted);
  return size(kept) + total(outputs.map(bytes)) + phases.map(size).reduce(larger, 0n);
}

function held(name) {
  const sums = Array(data[name].steps).fill(0n);
  for (const [first, last, factors, item] of data[name].bands) {
    const count = bytes([factors, item]);
    for (let n = first; n <= last; n++) sums[n] += count;
  }
  return sums.reduce(larger, 0n);
}

function number(source) {
  if (source.poly) return polynomial(source.poly);
  if (source.sum) return total(source.sum.map(bytes));
  return source.held ? held(source.held) : peak();
}

const grouped = (n) => n.toString().replace(/\B(?=(\d{3})+$)/g, ",");

function readable(n, digits, units) {
  let amount = Number(n), unit = 0;
  while (amount >= 1024 && unit < units.length - 1) { amount /= 1024; unit++; }
  return (unit ? amount.toFixed(digits) : n.toString()) + " " + units[unit];
}
const inWords = (n) => readable(n, 2, ["bytes", "KiB", "MiB", "GiB", "TiB"]);
const onAxis = (n) => readable(n, 1, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]).replace(".0 ", " ");

function draw(name, top) {
  const svg = document.querySelector("#" + name + " svg");
  const wide = frame.width - frame.left - frame.right;
  const high = frame.height - frame.top - frame.bottom;
  const {steps, bands} = data[name];
  const base = Array(steps).fill(0n);
  const y = (n) => (frame.top + high * (1 - Number(n) / Number(top))).toFixed(1);
  const x = (n) => (frame.left + (wide * n) / steps).toFixed(1);
  bands.forEach(([first, last, factors, item], band) => {
    const count = bytes([factors, item]), upper = [], lower = [];
    for (let n = first; n <= last; n++) {
      const above = y(base[n] + count), below = y(base[n]);
      upper.push(x(n) + " " + above, x(n + 1) + " " + above);
      lower.unshift(x(n + 1) + " " + below, x(n) + " " + below);
      base[n] += count;
    }
    svg.querySelector(`[data-band="${band}"]`).setAttribute("d", "M" + upper.concat(lower).join("L") + "Z");
  });
  svg.querySelectorAll(".tick.y").forEach((tick, n) => { tick.textContent = onAxis((top * BigInt(n)) / 4n); });
}

function update() {
  document.querySelectorAll("[data-number]").forEach((place) => {
    const value = number(data.numbers[place.dataset.number]);
    place.dataset.value = value;
    place.textContent = place.dataset.unit === "bytes" ? inWords(value) : grouped(value);
  });
  shares();
  const tops = ["before", "after"].map((name) => larger(held(name), 1n));
  const own = document.getElementById("own").checked;
  ["before", "after"].forEach((name, n) => draw(name, own ? tops[n] : larger(...tops)));
  document.querySelectorAll(".sortable").forEach(resort);
}

// A bar behind each number of a column: its part of the column's sum.
function shares() {
  document.querySelectorAll("table").forEach((table) => {
    const cells = [...table.querySelectorAll("td.share")];
    const values = cells.map((cell) => BigInt(cell.firstChild.dataset.value));
    const sum = Number(total(values));
    cells.forEach((cell, n) => {
      cell.style.setProperty("--part", (sum ? (100 * Number(values[n])) / sum : 0).toFixed(1) + "%");
    });
  });
}

function key(row, column) {
  const cell = row.cells[column], held = cell.querySelector("[data-value]");
  return held ? BigInt(held.dataset.value) : cell.textContent;
}

function sort(table, column, down) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [key(row, column), row]);
  keyed.sort(([a], [b]) => {
    const order = typeof a === "bigint" ? (a < b ? -1 : a > b ? 1 : 0)
      : a.localeCompare(b, "en", {numeric: true});
    return down ? -order : order;
  });
  body.append(...keyed.map(([, row]) => row));
}

function resort(table) {
  const heads = [...table.tHead.rows[0].cells];
  const column = heads.findIndex((head) => head.hasAttribute("aria-sort"));
  if (column >= 0) sort(table, column, heads[column].getAttribute("aria-sort") === "descending");
}

document.querySelectorAll(".sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const next = !now ? first : now === "ascending" ? "descending" : "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", next);
      resort(table);
    });
  });
});

function choose(space, value) {
  extents[space] = BigInt(value);
  document.querySelectorAll(`input[data-space="${space}"]`).forEach((input) => {
    if (input.type === "range" && Number(input.max) < Number(value)) input.max = value;
    if (input.value !== String(value)) input.value = value;
  });
}

document.querySelectorAll("input[data-space]").forEach((input) => {
  input.addEventListener("input", () => {
    if (!/^\d+$/.test(input.value)) return;
    choose(input.dataset.space, input.value);
    update();
  });
});
document.getElementById("extents").addEventListener("submit", (event) => event.preventDefault());
document.getElementById("reset").addEventListener("click", () => {
  for (const [space, extent] of Object.entries(data.extents)) choose(space, extent);
  update();
});
document.getElementById("own").addEventListener("change", update);
document.documentElement.classList.add("live");
shares();

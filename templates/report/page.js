"use strict";
// Evaluates the numbers of this page at the chosen extents, in exact integers.
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

const bytes = ([factors, item]) => product(factors) * BigInt(item);

function atOwnExtents() {
  return Object.entries(data.extents).every(([space, n]) => extents[space] === BigInt(n));
}

// The peak as tcgen computed it at the extents of the page; a lower bound at others.
function peak({exact, bound}) {
  return atOwnExtents() ? BigInt(exact) : bound.map(polynomial).reduce(larger);
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
  return source.held ? held(source.held) : peak(source);
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
  document.documentElement.classList.toggle("elsewhere", !atOwnExtents());
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

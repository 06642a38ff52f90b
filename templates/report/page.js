"use strict";
// Evaluates the numbers of this page at the chosen extents, in exact integers.
const data = JSON.parse(document.getElementById("data").textContent);
const extents = Object.fromEntries(Object.entries(data.extents).map(([s, n]) => [s, BigInt(n)]));
const frame = data.frame;
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
    let values = n;
    for (let k = 1; k <= Math.abs(sign); ++k) values = values * (n + BigInt(Math.sign(sign) * k)) / BigInt(k + 1);
    return all * values;
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

// Points of loops that depend on each other: the number for all values of the variables on which
// later ones depend, variable by variable. A run of values is added by its two ends.
function pointsOf(rows) {
  const needed = rows.map((_, n) => rows.findLastIndex(([, , base, , bound]) => base === n || bound === n));
  let live = [], states = new Map([["", [[], 1n]]]);
  rows.forEach(([length, step, base, tile, bound, past], n) => {
    const kept = live.filter((p) => needed[p] > n), next = new Map();
    for (const [values, count] of states.values()) {
      const at = (p) => values[live.indexOf(p)];
      const start = base === null ? 0 : at(base);
      let stop = tile === null ? length : Math.min(length, start + tile);
      if (bound !== null) stop = Math.min(stop, at(bound) + past);
      const steps = Math.ceil((stop - start) / step);
      if (steps <= 0) continue;
      const rest = kept.map(at), key = rest.join();
      if (!next.has(key)) next.set(key, [rest, needed[n] < 0 ? 0n : new Map()]);
      const entry = next.get(key);
      if (needed[n] < 0) { entry[1] += count * BigInt(steps); continue; }
      const first = start / step, change = (m, c) => entry[1].set(m, (entry[1].get(m) || 0n) + c);
      change(first, count);
      change(first + steps, -count);
    }
    if (needed[n] < 0) { live = kept; states = next; return; }
    live = [...kept, n];
    states = new Map();
    for (const [rest, changes] of next.values()) {
      const ends = [...changes.keys()].sort((a, b) => a - b);
      let count = 0n;
      ends.slice(0, -1).forEach((here, m) => {
        count += changes.get(here);
        for (let value = here; count && value < ends[m + 1]; value++) {
          const values = [...rest, value * step];
          states.set(values.join(), [values, count]);
        }
      });
    }
  });
  return total([...states.values()].map(([, count]) => count));
}

// At extents that differ by whole tiles the points of one space are a polynomial in the tiles.
function partPoints(part) {
  const lengths = part.map(([spaces, fixed]) => BigInt(fixed) + total(spaces.map((s) => extents[s])));
  if (part.length === 1) {
    const [, , step, , tile] = part[0];
    const stop = tile !== null && BigInt(tile) < lengths[0] ? BigInt(tile) : lengths[0];
    return stop > 0n ? (stop + BigInt(step) - 1n) / BigInt(step) : 0n;
  }
  const tile = BigInt(Math.max(...part.map((row) => row[2])));
  const far = lengths.reduce(larger) / tile - 4n, degree = part.length;
  const rows = (less) => part.map((row, n) => [Number(lengths[n] - less), ...row.slice(2)]);
  if (far <= BigInt(degree) + 1n) return pointsOf(rows(0n));
  let samples = Array.from({length: degree + 1}, (_, n) => pointsOf(rows((far - BigInt(n)) * tile)));
  let all = 0n, choices = 1n;
  for (let order = 0; order <= degree; order++) {
    all += choices * samples[0];
    samples = samples.slice(1).map((value, n) => value - samples[n]);
    choices = (choices * (far - BigInt(order))) / BigInt(order + 1);
  }
  return all;
}

const domainPoints = (parts) => parts.reduce((all, part) => (all ? all * partPoints(part) : 0n), 1n);
let known = new Map();  // points of the domains at the chosen extents

function work(list) {
  return total(list.map(([each, place]) => {
    if (!known.has(place)) known.set(place, domainPoints(data.domains[place]));
    return BigInt(each) * known.get(place);
  }));
}

function number(source) {
  if (source.work) return work(source.work);
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

// One drawing where fusion changes nothing.
const drawings = ["before", "after"].filter((name) => document.getElementById(name));

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
  known = new Map();
  document.querySelectorAll("[data-number]").forEach((place) => {
    const value = number(data.numbers[place.dataset.number]);
    place.dataset.value = value;
    place.textContent = place.dataset.unit === "bytes" ? inWords(value) : grouped(value);
  });
  shares();
  const tops = drawings.map((name) => larger(held(name), 1n));
  const own = document.getElementById("own")?.checked;
  drawings.forEach((name, n) => draw(name, own ? tops[n] : larger(...tops)));
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
document.getElementById("own")?.addEventListener("change", update);
document.documentElement.classList.add("live");
shares();

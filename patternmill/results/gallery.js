
"use strict";
// Cards are made of elements and text, never of markup, so that no prompt or answer can become part of the page.
const ALL_AT_ONCE = 2500;
const PAGE = 240;
const CAUSES_SHOWN = 6;
const STATUSES = {
  failed: ["Failed", "bad"],
  refused: ["Refused", "bad"],
  held: ["Held", "bad"],
  in_doubt: ["In doubt", "warn"],
  waiting: ["Waiting", "warn"],
  cancelled: ["Cancelled", "rest"],
  not_started: ["Not started", "rest"],
  succeeded: ["Succeeded", "good"],
};
const RANK = Object.fromEntries(Object.keys(STATUSES).map((status, rank) => [status, rank]));
const OUTCOMES = {
  Completed: ["Completed", "good"],
  CompletedWithFailures: ["Completed with failures", "warn"],
  Failed: ["Failed", "bad"],
  BudgetReached: ["Budget reached", "warn"],
  Cancelled: ["Cancelled", "warn"],
  SkippedOverlap: ["Skipped: another run was at work", "warn"],
};
const PAINTS = {
  black: "#2b2a29", charcoal: "#43474b", grey: "#8d9093", gray: "#8d9093", slate: "#61707d", silver: "#bcc0c4", white: "#f6f4ee", ivory: "#f4eeda", cream: "#f3e7c9",
  beige: "#dcc9a6", sand: "#dcc08f", linen: "#e8dcc6", oat: "#dfcfb0", taupe: "#9a8778", brown: "#80583a", chocolate: "#5b3a28", walnut: "#66493a", caramel: "#bd8044", tan: "#c59a6b",
  rust: "#ad4f2a", terracotta: "#c4674a", copper: "#b56d43", clay: "#b4694e", brick: "#9d4434", orange: "#e5833b", tangerine: "#ee8a3c", apricot: "#f2ae7b", peach: "#f3b795", coral: "#ef7d69",
  salmon: "#ee9481", red: "#c43a35", crimson: "#a92743", scarlet: "#cc3429", burgundy: "#6f2236", wine: "#702839", maroon: "#74282d", raspberry: "#b52a5d", cherry: "#a8243a", pink: "#ea9db3",
  rose: "#d98b97", blush: "#ebc2b9", fuchsia: "#c8357f", magenta: "#b8327c", plum: "#713c66", purple: "#76509b", violet: "#7d5dad", lavender: "#b3a2d6", lilac: "#c1a5d2", mauve: "#b08ba3",
  indigo: "#3f4393", navy: "#22345c", midnight: "#1c2645", cobalt: "#2650a4", blue: "#4479b8", denim: "#4a6a92", sky: "#8fc0e2", azure: "#4f9fd8", turquoise: "#3fb1ad", teal: "#1f7a7a",
  aqua: "#6ac5c1", mint: "#a5d8bd", seafoam: "#9bd0b8", jade: "#2f8f6b", emerald: "#1f8458", green: "#5b9559", sage: "#9fb08f", olive: "#7b7b3c", moss: "#6d7b42", forest: "#2c5540",
  lime: "#aecb45", chartreuse: "#b4c93b", yellow: "#edc94b", lemon: "#f1dd6b", mustard: "#cf9b2b", gold: "#c9a03d", golden: "#d3aa48", ochre: "#c28a35", amber: "#dd9b37", saffron: "#e6a530", honey: "#dca744",
};

const byId = (id) => document.getElementById(id);
const read = (id) => JSON.parse(byId(id).textContent);
const run = read("run-data");
const rows = read("row-data");
const cards = new Map();
const haystacks = new Map();
const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
const number = (value) => value.toLocaleString();
const chosen = { statuses: new Set(), category: "", cause: null, terms: [], order: "attention" };
let shown = [];
let laid = 0;

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key === "class") element.className = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const title = (row) => STATUSES[row.status]?.[0] ?? row.status;
const tone = (row) => STATUSES[row.status]?.[1] ?? "rest";

/* The tile that stands where there is no picture: the prompt itself, on the colours that it names. */

function paintsOf(prompt) {
  const found = (prompt.toLowerCase().match(/[a-z]+/g) ?? []).filter((word) => Object.hasOwn(PAINTS, word));
  return [...new Set(found)].slice(0, 5).map((word) => PAINTS[word]);
}

function hashOf(text) {
  let hash = 2166136261;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 16777619);
  return hash >>> 0;
}

function tile(row, why) {
  const prompt = row.prompt ?? "";
  const paints = paintsOf(prompt);
  const hue = hashOf(prompt) % 360;
  const element = make("span", { class: `tile ${tone(row)}` },
    make("q", { dir: "auto" }, prompt || "No prompt"),
    make("small", {}, make("span", {}, why), swatches(paints)));
  element.style.setProperty("--hue-a", paints[0] ?? `hsl(${hue} 45% 55%)`);
  element.style.setProperty("--hue-b", paints[1] ?? paints[0] ?? `hsl(${(hue + 50) % 360} 45% 55%)`);
  return element;
}

function swatches(paints) {
  return make("span", { class: "paints" }, ...paints.map((paint) => {
    const dot = make("i");
    dot.style.background = paint;
    return dot;
  }));
}

function noPicture(row) {
  if (row.status === "succeeded") return "Picture not at hand";
  return row.pattern ? `${title(row)} · pattern made` : title(row);
}

function picture(row, address, kind, eager) {
  const image = make("img", {
    alt: `${kind} of ${row.sku}`, decoding: "async", loading: eager ? "eager" : "lazy", referrerpolicy: "no-referrer", src: address,
  });
  image.addEventListener("error", () => image.replaceWith(tile(row, noPicture(row))), { once: true });
  return image;
}

function inset(row) {
  const image = make("img", { class: "inset", alt: "", decoding: "async", loading: "lazy", referrerpolicy: "no-referrer", src: row.patternPicture });
  image.addEventListener("error", () => image.remove(), { once: true });
  return image;
}

function pictureOf(row) {
  if (row.productPicture) return [picture(row, row.productPicture, "Product"), row.patternPicture ? inset(row) : null];
  if (row.patternPicture) return [picture(row, row.patternPicture, "Pattern")];
  return [tile(row, noPicture(row))];
}

/* Cards */

function card(index) {
  if (!cards.has(index)) cards.set(index, buildCard(rows[index], index));
  return cards.get(index);
}

function buildCard(row, index) {
  return make("li", { class: `card ${tone(row)}`, "data-status": row.status, "data-line": row.line },
    make("button", { type: "button", class: "open", "aria-label": `${row.sku}: ${title(row)}. Details`, onclick: () => openDetail(index) }, ...pictureOf(row)),
    make("div", { class: "body" },
      make("div", { class: "top" },
        make("span", { class: "sku", dir: "auto" }, row.sku || `Row ${row.line}`),
        make("span", { class: "kind", dir: "auto", title: row.category }, row.category ?? "")),
      promptOf(row),
      wants(row),
      fault(row),
      make("div", { class: "foot" },
        make("span", { class: `word ${tone(row)}` }, make("i", { class: "dot" }), title(row)),
        row.product ? identifier(row.product, "product ID") : null)));
}

function promptOf(row) {
  return make("p", { class: row.prompt ? "prompt" : "prompt none", dir: "auto" }, row.prompt || "No prompt");
}

function wants(row) {
  if (!row.selections) return null;
  return make("div", { class: "wants" }, ...row.selections.map(([name, value]) => make("span", { title: `${name}: ${value}` }, value)));
}

function fault(row) {
  if (!row.error && !row.remedy) return null;
  return make("p", { class: `fault ${tone(row)}` }, make("span", {}, row.error ?? ""), row.remedy ? make("em", {}, row.remedy) : null);
}

function identifier(text, what) {
  const copy = async (event) => {
    const button = event.currentTarget;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
      setTimeout(() => (button.textContent = text), 900);
    } catch {
      getSelection().selectAllChildren(button);
    }
  };
  return make("button", { type: "button", class: "id", title: `Copy the ${what}`, onclick: copy }, text);
}

/* What is shown, and in which order */

function haystack(index) {
  if (!haystacks.has(index)) {
    const row = rows[index];
    const selections = (row.selections ?? []).flat();
    haystacks.set(index, [row.sku, row.prompt, row.category, ...selections, row.product, row.pattern, row.code, row.error].join("\n").toLowerCase());
  }
  return haystacks.get(index);
}

function matches(index, besides) {
  const row = rows[index];
  if (besides !== "status" && chosen.statuses.size && !chosen.statuses.has(row.status)) return false;
  if (chosen.category && (row.category ?? "") !== chosen.category) return false;
  if (chosen.cause !== null && row.cause !== chosen.cause) return false;
  return chosen.terms.every((term) => haystack(index).includes(term));
}

const ORDERS = {
  line: (a, b) => a - b,
  attention: (a, b) => (RANK[rows[a].status] ?? 0) - (RANK[rows[b].status] ?? 0) || a - b,
  sku: (a, b) => words.compare(rows[a].sku, rows[b].sku) || a - b,
  category: (a, b) => words.compare(rows[a].category ?? "", rows[b].category ?? "") || a - b,
  prompt: (a, b) => words.compare(rows[a].prompt ?? "", rows[b].prompt ?? "") || a - b,
};

function show() {
  shown = [];
  for (let index = 0; index < rows.length; index++) if (matches(index)) shown.push(index);
  shown.sort(ORDERS[chosen.order]);
  laid = 0;
  byId("grid").replaceChildren();
  lay(shown.length <= ALL_AT_ONCE ? shown.length : PAGE);
  const all = shown.length === rows.length;
  byId("tally").textContent = all ? `${number(rows.length)} rows` : `${number(shown.length)} of ${number(rows.length)} rows`;
  byId("empty").hidden = shown.length > 0;
  countChips();
}

function lay(count) {
  const next = document.createDocumentFragment();
  for (const index of shown.slice(laid, laid + count)) next.append(card(index));
  laid = Math.min(shown.length, laid + count);
  byId("grid").append(next);
}

/* Tools */

function chip(status) {
  const [word, colour] = STATUSES[status] ?? [status, "rest"];
  return make("button", { type: "button", class: `chip ${colour}`, "data-status": status, "aria-pressed": "false", onclick: () => toggle(status) },
    make("i", { class: "dot" }), word, make("b"));
}

function toggle(status) {
  if (!status) chosen.statuses.clear();
  else if (!chosen.statuses.delete(status)) chosen.statuses.add(status);
  show();
}

function countChips() {
  const counts = {};
  let sum = 0;
  for (let index = 0; index < rows.length; index++) {
    if (!matches(index, "status")) continue;
    counts[rows[index].status] = (counts[rows[index].status] ?? 0) + 1;
    sum++;
  }
  for (const button of byId("chips").children) {
    const status = button.dataset.status;
    button.querySelector("b").textContent = number(status ? counts[status] ?? 0 : sum);
    button.setAttribute("aria-pressed", String(status ? chosen.statuses.has(status) : !chosen.statuses.size));
  }
  for (const button of byId("cause-list").querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.cause) === chosen.cause));
}

function fillTools() {
  const present = Object.keys(STATUSES).filter((status) => rows.some((row) => row.status === status));
  const all = make("button", { type: "button", class: "chip", "aria-pressed": "true", onclick: () => toggle(null) }, "All", make("b"));
  byId("chips").append(all, ...present.reverse().map(chip));
  const categories = [...new Set(rows.map((row) => row.category ?? ""))].filter(Boolean).sort(words.compare);
  byId("category").append(make("option", { value: "" }, "All categories"), ...categories.map((name) => make("option", { value: name }, name)));
  byId("category").hidden = categories.length < 2;
}

function fillCauses() {
  if (!run.causes.length) return;
  const sum = run.causes.reduce((total, cause) => total + cause.count, 0);
  byId("causes").hidden = false;
  byId("causes-title").textContent = sum === 1 ? "1 row needs attention" : `${number(sum)} rows need attention`;
  const items = run.causes.map(causeItem);
  items.slice(CAUSES_SHOWN).forEach((item) => (item.hidden = true));
  byId("cause-list").append(...items);
  const more = byId("more-causes");
  more.hidden = items.length <= CAUSES_SHOWN;
  more.textContent = `${number(items.length - CAUSES_SHOWN)} more causes`;
  more.addEventListener("click", () => {
    items.forEach((item) => (item.hidden = false));
    more.hidden = true;
  });
}

function causeItem(cause, index) {
  return make("li", {}, make("button", { type: "button", "data-cause": index, "aria-pressed": "false", onclick: () => chooseCause(index) },
    make("span", { class: "count" }, `${number(cause.count)} ×`),
    make("span", { class: "what" }, cause.message || cause.code, " ", make("span", { class: "todo" }, cause.remedy)),
    make("code", {}, cause.code)));
}

function chooseCause(index) {
  chosen.cause = chosen.cause === index ? null : index;
  show();
}

function clear() {
  Object.assign(chosen, { category: "", cause: null, terms: [] });
  chosen.statuses.clear();
  byId("query").value = byId("category").value = "";
  show();
}

/* The masthead */

function fillMasthead() {
  const [outcome, colour] = OUTCOMES[run.outcome] ?? [run.outcome ?? "Not finished", "warn"];
  byId("catalog").textContent = run.catalog;
  byId("environment").textContent = run.environment;
  byId("outcome").textContent = outcome;
  byId("outcome").className = colour;
  const facts = [[run.rows, "row", "rows"], [run.products, "product", "products"], [run.patterns, "pattern", "patterns"]];
  const parts = facts.flatMap(([count, one, many]) => [make("b", {}, number(count)), ` ${count === 1 ? one : many} · `]);
  byId("facts").append(...parts, whenItRan());
  byId("reason").textContent = run.reason ?? "";
  byId("reason").hidden = !run.reason;
}

function whenItRan() {
  const started = new Date(run.started);
  const date = started.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return run.ended ? `${date}, in ${duration((new Date(run.ended) - started) / 1000)}` : date;
}

function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/* One row, large */

let current = null;

function openDetail(index) {
  current = index;
  const dialog = byId("detail");
  dialog.replaceChildren(sheet(rows[index]));
  if (!dialog.open) dialog.showModal();
}

function sheet(row) {
  const at = shown.indexOf(current);
  return make("div", { class: "sheet" }, stage(row),
    make("div", { class: "words" },
      make("header", {},
        make("h2", { id: "detail-title", dir: "auto" }, row.sku || `Row ${row.line}`),
        make("button", { type: "button", class: "close", onclick: () => byId("detail").close() }, "Close")),
      promptOf(row), fault(row), facts(row),
      make("p", { class: "walk" }, make("span", {}, "← → to walk through"), make("span", {}, `${number(at + 1)} of ${number(shown.length)}`))));
}

function stage(row) {
  const holder = make("div", { class: "stage" });
  const views = [["Product", row.productPicture], ["Pattern", row.patternPicture]].filter(([, address]) => address);
  if (!views.length) holder.append(tile(row, noPicture(row)));
  else holder.append(picture(row, views[0][1], views[0][0], true));
  if (views.length > 1) holder.append(make("div", { class: "swap" }, ...views.map((view, place) => swapButton(row, view, place))));
  return holder;
}

function swapButton(row, [kind, address], place) {
  const swap = (event) => {
    const holder = event.currentTarget.closest(".stage");
    holder.firstElementChild.replaceWith(picture(row, address, kind, true));
    for (const other of holder.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === event.currentTarget));
  };
  return make("button", { type: "button", "aria-pressed": String(place === 0), onclick: swap }, kind);
}

function facts(row) {
  const pairs = [["Status", title(row)], ["Category", row.category], ...(row.selections ?? []), ["Row in the file", String(row.line)], ["Ordered", row.ordered], ["Error code", row.code]];
  const list = pairs.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", { dir: "auto" }, value)]);
  const ids = [["Product", row.product], ["Pattern", row.pattern]].filter(([, id]) => id);
  return make("dl", {}, ...list, ...ids.flatMap(([name, id]) => [make("dt", {}, name), make("dd", {}, identifier(id, `${name.toLowerCase()} ID`))]));
}

function walk(step) {
  const next = shown[shown.indexOf(current) + step];
  if (next !== undefined) openDetail(next);
}

/* Keys */

function columns() {
  return getComputedStyle(byId("grid")).gridTemplateColumns.split(" ").length;
}

function moveFocus(button, step) {
  const all = byId("grid").children;
  const at = Array.prototype.indexOf.call(all, button.closest(".card"));
  const target = all[at + step]?.querySelector(".open");
  if (target) target.focus();
  return Boolean(target);
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select");
  if (byId("detail").open) {
    if (event.key === "ArrowRight") walk(1);
    if (event.key === "ArrowLeft") walk(-1);
    return;
  }
  if (event.key === "/" && !typing) {
    byId("query").focus();
    event.preventDefault();
  }
  if (event.key === "Escape") clear();
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns(), ArrowUp: -columns() }[event.key];
  if (step && event.target.matches(".open") && moveFocus(event.target, step)) event.preventDefault();
}

function listen() {
  let pause;
  byId("query").addEventListener("input", (event) => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      chosen.terms = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      show();
    }, rows.length > ALL_AT_ONCE ? 160 : 60);
  });
  byId("category").addEventListener("change", (event) => { chosen.category = event.target.value; show(); });
  byId("order").addEventListener("change", (event) => { chosen.order = event.target.value; show(); });
  byId("clear").addEventListener("click", clear);
  byId("detail").addEventListener("click", (event) => { if (event.target === event.currentTarget) event.currentTarget.close(); });
  byId("detail").addEventListener("close", () => cards.get(current)?.querySelector(".open").focus());
  document.addEventListener("keydown", onKey);
  addEventListener("beforeprint", () => lay(ALL_AT_ONCE - laid));
  new IntersectionObserver((entries) => { if (entries[0].isIntersecting && laid < shown.length) lay(PAGE); }, { rootMargin: "1600px" }).observe(byId("sentinel"));
}

fillMasthead();
fillCauses();
fillTools();
listen();
show();
document.documentElement.dataset.ready = "true";

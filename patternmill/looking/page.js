
"use strict";
// Cards are made of elements and text, never of markup, so that no prompt or answer can become part of the page.
const ALL_AT_ONCE = 2500;
const PAGE = 240;
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
const byId = (id) => document.getElementById(id);
const read = (id) => JSON.parse(byId(id).textContent);
const run = read("run-data");
const rows = read("row-data");
const cards = new Map();
const haystacks = new Map();
const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
const number = (value) => value.toLocaleString();
const chosen = { statuses: new Set(), category: "", cause: null, terms: [] };
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

/* The tile that stands where there is no picture: the prompt itself. */

function tile(row) {
  return make("span", { class: `tile ${tone(row)}` }, make("q", { dir: "auto" }, row.prompt || "No prompt"), make("small", {}, noPicture(row)));
}

function noPicture(row) {
  if (row.status === "succeeded") return "Picture not at hand";
  return row.pattern ? `${title(row)} · pattern made` : title(row);
}

function picture(row, address, kind, eager) {
  const image = make("img", {
    alt: `${kind} of ${row.sku}`, decoding: "async", loading: eager ? "eager" : "lazy", referrerpolicy: "no-referrer", src: address,
  });
  image.addEventListener("error", () => image.replaceWith(tile(row)), { once: true });
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
  return [tile(row)];
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
        row.product ? make("code", { class: "id" }, row.product) : null)));
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

const byAttention = (a, b) => (RANK[rows[a].status] ?? 0) - (RANK[rows[b].status] ?? 0) || a - b;

function show() {
  shown = [];
  for (let index = 0; index < rows.length; index++) if (matches(index)) shown.push(index);
  shown.sort(byAttention);
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
  byId("cause-list").append(...run.causes.map(causeItem));
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
  return run.took ? `${date}, in ${run.took}` : date;
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
  return make("div", { class: "sheet" }, stage(row),
    make("div", { class: "words" },
      make("header", {},
        make("h2", { id: "detail-title", dir: "auto" }, row.sku || `Row ${row.line}`),
        make("button", { type: "button", class: "close", onclick: () => byId("detail").close() }, "Close")),
      promptOf(row), fault(row), facts(row)));
}

function stage(row) {
  const views = [["Product", row.productPicture], ["Pattern", row.patternPicture]].filter(([, address]) => address);
  return make("div", { class: "stage" }, ...(views.length ? views.map(([kind, address]) => picture(row, address, kind, true)) : [tile(row)]));
}

function facts(row) {
  const pairs = [["Status", title(row)], ["Category", row.category], ...(row.selections ?? []), ["Row in the file", String(row.line)],
    ["Ordered", row.ordered], ["Error code", row.code], ["Product", row.product], ["Pattern", row.pattern]];
  return make("dl", {}, ...pairs.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", {}, name), make("dd", { dir: "auto" }, value)]));
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
  byId("clear").addEventListener("click", clear);
  byId("detail").addEventListener("click", (event) => { if (event.target === event.currentTarget) event.currentTarget.close(); });
  byId("detail").addEventListener("close", () => cards.get(current)?.querySelector(".open").focus());
  addEventListener("beforeprint", () => lay(ALL_AT_ONCE - laid));
  new IntersectionObserver((entries) => { if (entries[0].isIntersecting && laid < shown.length) lay(PAGE); }, { rootMargin: "1600px" }).observe(byId("sentinel"));
}

fillMasthead();
fillCauses();
fillTools();
listen();
show();
document.documentElement.dataset.ready = "true";

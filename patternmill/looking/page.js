
"use strict";
// Everything on the page is made of elements and text, never of markup, so that no prompt or answer can become part of it.
const STATUSES = {
  succeeded: ["●", "Succeeded", "good"], failed: ["●", "Failed", "bad"], refused: ["●", "Refused", "bad"], held: ["●", "Held", "bad"],
  in_doubt: ["●", "In doubt", "warn"], waiting: ["●", "Waiting", "warn"], cancelled: ["●", "Cancelled", "rest"], not_started: ["●", "Not started", "rest"],
};
const VERDICTS = {
  undecided: ["○", "Undecided", "rest"],
  pick: ["✓", "Picked", "good"],
  reject: ["✕", "Rejected", "bad"],
  again: ["↻", "Again", "warn"],
  later: ["⋯", "Later", "rest"],
};
const REASONS = ["Too dark", "Too bright", "Wrong colours", "Too busy", "Too plain", "Wrong motif", "Seam shows", "Blurred", "Off the product"];
/* Key, glyph, word, what it does, and what it is called in the list of keys. */
const ACTIONS = [
  ["p", "✓", "Pick", () => judge("pick"), "Pick"],
  ["x", "✕", "Reject", () => judge("reject"), "Reject"],
  ["a", "↻", "Again", () => judge("again"), "Make it again; then 1 to 9 says why, or Enter and a note"],
  [" ", "⋯", "Later", () => judge("later"), "Decide later; it stays counted"],
  ["u", "○", "Clear", () => judge("undecided"), "Undecided"],
  ["z", "↶", "Undo", () => undo(), "Undo, also after the page was closed"],
  ["g", "▦", "Sheet", () => show("sheet"), "All patterns"],
  ["e", "▢", "One", () => show("one"), "One pattern, filling the screen; ↑ ↓ turn to its takes and products"],
  ["c", "◫", "Compare", () => show("compare"), "Takes side by side, or the next pattern beside it; ← → choose, ↑ ↓ go on"],
  ["f", "⌕", "Zoom", () => document.body.toggleAttribute("data-zoom"), "Zoom; the pointer, or Shift and arrows, moves the crop"],
  ["?", "?", "Keys", () => byId("keys").showModal(), "These keys"],
  ["/", null, null, () => { show("sheet"); byId("query").focus(); }, "Search"],
];
const GAP = 22;
const AHEAD = 3;
const POOL = 16;
const SWIPE = 60;
const BATCH = 200;
const RESEND = 1500;
const MOST_FACES = 100;

const byId = (id) => document.getElementById(id);
const read = (id) => JSON.parse(byId(id).textContent);
const run = read("run-data");
const rows = read("row-data");
const groups = read("pattern-data");
const owners = new Map(groups.flatMap((group) => group.takes.map((take) => [take.item, group])));
const served = document.querySelector("meta[name=patternmill-served]");
/* What opens the server: for this tab alone. Nothing of it is sent by the browser itself. */
const session = served && sessionStorage.getItem("patternmill");
const ask = (path, how = {}) => fetch(path, { ...how, headers: { ...how.headers, authorization: `Bearer ${session}` } });
const number = (value) => value.toLocaleString();
const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const nameOf = (row) => row.sku || `Row ${row.line}`;
const groupName = (group) => nameOf(rows[group.rows[0]]) + (group.rows.length > 1 ? ` and ${number(group.rows.length - 1)} more` : "");
const takeOf = (group) => group.takes.find((take) => take.chosen) ?? group.takes.find((take) => take.item === group.item) ?? group.takes[0];
const chips = new Set();
let terms = [];
let shown = [];
let current = null;
let view = "sheet";

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

const say = (text) => { byId("said").textContent = text; };

/* Decisions: events in the order in which they were made, kept in the browser until they are elsewhere. */
const verdicts = new Map();
const events = [];
const undone = new Set();
let unsent = [];
let kept = 0;

/* Of a pattern that has several takes the picked one counts. */
function decisionOf(group) {
  const own = takeOf(group);
  const take = group.takes.find(({ item }) => verdicts.get(item)?.verdict === "pick") ?? own;
  const decision = verdicts.get(take?.item) ?? { verdict: "undecided" };
  return { ...decision, word: VERDICTS[decision.verdict][1] + (take === own ? "" : `: take ${take.take}`) };
}

const newId = () => crypto.randomUUID?.() ?? "10000000-1000-4000-8000-100000000000".replace(/[018]/g,
  (digit) => (digit ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (digit / 4)))).toString(16));

function decide({ item, digest: picture }, verdict, note = "", link = {}) {
  const was = verdicts.get(item);
  const event = {
    number: Math.max(Date.now(), (events.at(-1)?.number ?? 0) + 1), id: newId(), item, picture, verdict, note,
    by: served?.content ?? "", at: new Date().toISOString(), cell: run.cell, was: { verdict: was?.verdict, note: was?.note }, saved: false, ...link,
  };
  events.push(event);
  unsent.push(event);
  if (event.undoes) undone.add(event.undoes);
  verdicts.set(item, event);
  keep([event]);
  send();
  dress(owners.get(item));
  say(`${VERDICTS[verdict][1]}: ${groupName(owners.get(item))}${note ? `, ${note}` : ""}`);
  soon();
}

function judge(verdict) {
  const panel = view !== "sheet" ? panels[at] : null;
  const target = panel?.item ? panel : takeOf(current);
  if (!current.made) return say("There is no picture to decide on here.");
  askWhy(verdict === "again" ? target : null);
  decide(target, verdict);
  if (view === "compare" && verdict === "reject" && at < panels.length - 1) turn(1);
  else step(1, (group) => group.made);
}

function undo() {
  const last = events.findLast((event) => !event.undoes && !event.amends && !event.refused && !undone.has(event.id) && owners.has(event.item));
  if (!last) return say("There is nothing to undo.");
  askWhy(null);
  decide({ item: last.item, digest: last.picture }, last.was.verdict ?? "undecided", last.was.note ?? "", { undoes: last.id });
  if (!shown.includes(owners.get(last.item))) clear();
  go(owners.get(last.item));
}

/* Why it is to be made again: asked beside the next picture, and answered by one more key or not at all. */
let asked = null;

function askWhy(target) {
  asked = target;
  byId("why").hidden = !target;
  if (!target) return;
  const note = make("input", { placeholder: "Note (Enter)", "aria-label": "Note", maxlength: 500 });
  note.addEventListener("keydown", (event) => event.key === "Enter" && because(note.value.trim()));
  byId("why").replaceChildren(make("span", { dir: "auto" }, `${groupName(owners.get(target.item))}: why again?`),
    ...REASONS.map((reason, index) => make("button", { type: "button", class: "plain", onclick: () => because(reason) }, make("kbd", {}, index + 1), reason)), note);
}

function because(note) {
  if (note) decide(asked, "again", note, { amends: true });
  document.activeElement.blur();
  askWhy(null);
  go(current);
}

/* The draft is a database of the browser: unlike its local storage, it is on the disk once it says so. */
let draft = null;

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = reject;
});

function keep(changed) {
  if (!draft) return;
  const writing = draft.transaction("events", "readwrite", { durability: "strict" });
  for (const event of changed) writing.objectStore("events").put(event);
  writing.onabort = () => { draft = null; soon(); };
  writing.oncomplete = () => { kept = Math.max(kept, events.indexOf(changed.at(-1)) + 1); soon(); };
}

async function load() {
  try {
    // By the session: what another server of this address has left here is not read.
    const asking = indexedDB.open(`patternmill ${run.id} ${session ?? ""}`.trim(), 1);
    asking.onupgradeneeded = () => asking.result.createObjectStore("events", { keyPath: ["number", "id"] });
    draft = await done(asking);
    events.push(...await done(draft.transaction("events").objectStore("events").getAll()));
  } catch {
    draft = null;
  }
  kept = events.length;
  unsent = events.filter((event) => !event.saved && !event.refused);
  const pictures = new Map(groups.flatMap(({ takes }) => takes).map(({ item, digest }) => [item, digest]));
  for (const { item, decision } of groups.flatMap(({ takes }) => takes)) if (decision) verdicts.set(item, decision);
  for (const event of events) {
    if (event.undoes) undone.add(event.undoes);
    if (event.refused || event.picture !== pictures.get(event.item)) continue;
    if (!event.saved || !(event.at < verdicts.get(event.item)?.at)) verdicts.set(event.item, event);
  }
}

/* Served: each decision goes to the server at once, in order, and again under the same ID until it is saved. */
let trouble = "";
let sending = false;

async function send() {
  if (!served || sending || !unsent.length) return;
  sending = true;
  try {
    while (unsent.length) await sendBatch(unsent.slice(0, BATCH));
    trouble = "";
  } catch (error) {
    trouble = error instanceof TypeError ? "the server does not answer" : error.message;
    setTimeout(send, RESEND);
  }
  sending = false;
  soon();
}

const post = (path, value) => ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value) });

async function sendBatch(batch) {
  const answer = await post("/decisions", batch.map(({ id, item, picture, verdict, note, by, at }) => ({ id, item, picture, verdict, note, by, at })));
  if (!answer.ok) throw new Error([401, 403].includes(answer.status) ? "signed out: run patternmill look again" : `the server answered ${answer.status}`);
  const refused = new Map(((await answer.json()).refused ?? []).map(({ id, why }) => [id, why]));
  unsent = unsent.slice(batch.length);
  for (const event of batch) {
    event.refused = refused.get(event.id);
    event.saved = !event.refused;
    if (event.saved || !owners.has(event.item)) continue;
    if (verdicts.get(event.item) === event) verdicts.delete(event.item);
    dress(owners.get(event.item));
    say(`Not saved: ${groupName(owners.get(event.item))}: ${event.refused}`);
  }
  keep(batch);
}

/* From disk: decisions.csv, the last decision on each pattern. The checksum is of the cells as they read back. */
const CRC = Uint32Array.from({ length: 256 }, (_, value) => {
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function checksum(cells) {
  const crc = new TextEncoder().encode(cells.join("\u001f")).reduce((crc, byte) => CRC[(crc ^ byte) & 255] ^ (crc >>> 8), 0xffffffff);
  return ((crc ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
}

/* As every CSV of Patternmill: what a spreadsheet would run gets a leading '. */
const defuse = (cell) => (/^'*(?:[\t\r]|\s*[=+\-@＝＋－＠])/.test(cell) ? `'${cell}` : cell);
const quoted = (cell) => `"${defuse(cell).replaceAll('"', '""')}"`;

function saveFile() {
  const lines = [["run", "item", "sku", "picture", "verdict", "note", "by", "at", "id", "checksum"]];
  for (const [item, { picture, verdict, note, by, at, id, cell }] of verdicts) {
    const skus = owners.get(item).rows.map((index) => rows[index].sku).join(", ");
    const cells = [cell ?? run.cell, item, skus, picture, verdict, note ?? "", by ?? "", at, id];
    lines.push([...cells, checksum(cells)]);
  }
  const text = `\ufeff${lines.map((cells) => cells.map(quoted).join(",")).join("\r\n")}\r\n`;
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href: address, download: "decisions.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  for (const event of unsent) event.saved = true;
  keep(unsent);
  unsent = [];
  soon();
}

/* Pictures, and the tile that stands where there is none: the prompt itself. */
function tile(group) {
  const [, word, colour] = STATUSES[group.status];
  const text = group.status === "succeeded" ? "Picture not at hand" : word + (group.made ? " · pattern made" : "");
  return make("span", { class: `tile ${colour}` }, make("q", { dir: "auto" }, group.prompt || "No prompt"), make("small", {}, text));
}

function picture(address, how, instead) {
  const image = make("img", { alt: "", decoding: "async", referrerpolicy: "no-referrer", draggable: "false", ...how, src: served ? null : address });
  image.addEventListener("error", () => (instead ? image.replaceWith(instead()) : image.remove()), { once: true });
  if (served) image.fetched = fill(image, address);
  return image;
}

async function fill(image, address) {
  try {
    const answer = await ask(address);
    if (!answer.ok) throw new Error(answer.status);
    image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
    image.src = URL.createObjectURL(await answer.blob());
  } catch {
    image.dispatchEvent(new Event("error"));
  }
}

const pool = new Map();

/* A large picture, which may have been decoded while the one before it was looked at. */
function large({ group, picture: address, label = "Pattern" }) {
  const image = pool.get(address) ?? picture(address, {}, () => tile(group));
  image.alt = `${label} of ${groupName(group)}`;
  pool.delete(address);
  pool.set(address, image);
  if (pool.size > POOL) pool.delete(pool.keys().next().value);
  return image;
}

function decodeAhead() {
  const from = shown.indexOf(current) + 1;
  for (const group of shown.slice(from, from + AHEAD)) if (takeOf(group)?.picture) decoded(large({ ...takeOf(group), group })).catch(() => {});
}

async function decoded(image) {
  await image.fetched;
  await image.decode();
}

function badge([glyph, word, colour], text = word) {
  return make("span", { class: `badge ${colour}` }, make("i", { "aria-hidden": "true" }, glyph), text);
}

function marks({ verdict, word }) {
  return make("div", { class: "marks" }, verdict !== "undecided" ? badge(VERDICTS[verdict], word) : null);
}

function promptOf(text) {
  return make("p", { class: text ? "prompt" : "prompt none", dir: "auto" }, text || "No prompt");
}

function faultOf(row) {
  if (!row?.error && !row?.remedy) return null;
  return make("p", { class: `fault ${STATUSES[row.status][2]}`, dir: "auto" }, row.error ?? "", make("em", {}, row.remedy ?? ""));
}

/* The sheet: cards of one height, so that only those near the window need to exist. */
const cells = new Map();
const laid = new Map();
let columns = 1;
let height = 0;

function card(group) {
  const those = group.rows.map((index) => rows[index]);
  const products = those.filter((row) => row.productPicture);
  const address = takeOf(group)?.picture;
  const cell = make("div", { role: "gridcell", class: `card ${STATUSES[group.status][2]}`, tabindex: group === current ? "0" : "-1" },
    make("div", { class: "open" }, address ? picture(address, { loading: "lazy" }, () => tile(group)) : tile(group)),
    make("div", { class: "strip" }, ...products.slice(0, 4).map((row) => picture(row.productPicture, { loading: "lazy" })),
      products.length > 4 ? `+${number(products.length - 4)}` : null),
    make("div", { class: "body" },
      make("div", { class: "top" }, make("span", { class: "sku", dir: "auto" }, nameOf(those[0])),
        make("span", { class: "kind", dir: "auto" }, those.length > 1 ? counted(those.length, "row") : those[0].category ?? "")),
      promptOf(group.prompt), faultOf(those.find((row) => row.error)), badge(STATUSES[group.status])));
  cell.addEventListener("click", () => (group === current && document.activeElement === cell ? show("one") : go(group)));
  cells.set(group, cell);
  dress(group);
  return cell;
}

function dress(group) {
  const cell = cells.get(group);
  if (!cell) return;
  const decision = decisionOf(group);
  cell.querySelector(".marks")?.remove();
  cell.querySelector(".open").append(marks(decision));
  cell.dataset.verdict = decision.verdict;
  cell.setAttribute("aria-label", [groupName(group), STATUSES[group.status][1], group.made && decision.word].filter(Boolean).join(", "));
}

const lineOf = (line) => shown.slice(line * columns, (line + 1) * columns);

function lay() {
  if (view !== "sheet") return;
  const grid = byId("grid");
  const count = Math.ceil(shown.length / columns);
  const { top } = grid.getBoundingClientRect();
  const first = Math.max(0, Math.floor((-top - innerHeight) / height));
  const last = Math.min(count, Math.ceil((2 * innerHeight - top) / height));
  const wanted = new Set(current ? [Math.floor(shown.indexOf(current) / columns)] : []);
  for (let line = first; line < last; line++) wanted.add(line);
  for (const [line, element] of laid) {
    if (wanted.has(line)) continue;
    for (const group of lineOf(line)) cells.delete(group);
    element.remove();
    laid.delete(line);
  }
  for (const line of wanted) {
    if (laid.has(line)) continue;
    const element = make("div", { role: "row", class: "line", "aria-rowindex": line + 1 }, ...lineOf(line).map(card));
    element.style.top = `${line * height}px`;
    element.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    laid.set(line, element);
    grid.insertBefore(element, [...grid.children].find((other) => other.ariaRowIndex > line + 1) ?? null);
  }
}

function layAnew() {
  const grid = byId("grid");
  const [least, below] = ["--least", "--below"].map((name) => 15 * parseFloat(getComputedStyle(grid).getPropertyValue(name)));
  columns = Math.max(1, Math.floor((grid.clientWidth + GAP) / (least + GAP)));
  height = (grid.clientWidth - (columns - 1) * GAP) / columns + below + GAP;
  grid.setAttribute("aria-rowcount", Math.ceil(shown.length / columns));
  grid.setAttribute("aria-colcount", columns);
  grid.style.height = `${Math.ceil(shown.length / columns) * height}px`;
  grid.replaceChildren();
  laid.clear();
  cells.clear();
  lay();
}

/* Large: in view one a pattern with its takes and products to turn to; in view compare two to four in the same crop. */
let panels = [];
let at = 0;

function facesOf(group) {
  const takes = group.takes.map((take) => ({ ...take, group, label: group.takes.length > 1 ? `Take ${take.take}` : "Pattern" }));
  return [...takes, ...group.rows.slice(0, MOST_FACES).map((index) => ({ group, row: rows[index], picture: rows[index].productPicture, label: nameOf(rows[index]) }))];
}

/* Its takes; of one alone, the next pattern beside it. */
function rivalsOf(group) {
  const faces = facesOf(group);
  if (group.takes.length > 1) return faces.slice(0, Math.min(group.takes.length, 4));
  const next = shown.slice(shown.indexOf(group) + 1).find((other) => other.made);
  const beside = next ? [{ ...takeOf(next), group: next, label: groupName(next) }] : [];
  return [{ ...faces[0], label: groupName(group) }, ...beside];
}

function showLarge() {
  panels = view === "one" ? facesOf(current) : rivalsOf(current);
  at = Math.max(0, Math.min(at, panels.length - 1));
  byId("large").replaceChildren(make("h1", { class: "visually-hidden" }, groupName(current)), ...(view === "one" ? [figureOf(panels[at], at), wordsOf(current)] : panels.map(figureOf)));
  decodeAhead();
}

function figureOf(panel, index) {
  const { group, label, item } = panel;
  const own = verdicts.get(item ?? takeOf(group)?.item) ?? { verdict: "undecided" };
  const decision = view === "one" ? decisionOf(group) : { ...own, word: VERDICTS[own.verdict][1] };
  const name = view === "one" ? groupName(group) : label;
  const figure = make("figure", { role: "group", tabindex: index === at ? "0" : "-1", "aria-label": `${name}, ${decision.word}` },
    make("div", { class: "stage" }, panel.picture ? large(panel) : tile(group), marks(decision)));
  if (view === "one") return figure;
  figure.addEventListener("click", () => turn(index - at));
  figure.append(make("h2", { dir: "auto" }, label), promptOf(group.prompt));
  return figure;
}

function wordsOf(group) {
  const row = panels[at].row ?? rows[group.rows[0]];
  const { note } = decisionOf(group);
  const facts = [["Sku", row.sku], ["Status", STATUSES[row.status][1]], ["Category", row.category], ...(row.selections ?? []), ["Row in the file", String(row.line)],
    ["Ordered", row.ordered], ["Error code", row.code], ["Product", row.product], ["Pattern", row.pattern]].filter(([, value]) => value);
  const face = (panel, index) => make("button", { type: "button", "aria-pressed": String(index === at), onclick: () => turn(index - at) },
    panel.picture ? picture(panel.picture, { loading: "lazy" }) : null, make("span", { dir: "auto" }, panel.label));
  return make("div", { class: "words" },
    make("p", { class: "count" }, `${number(shown.indexOf(group) + 1)} of ${number(shown.length)}`),
    make("h2", { dir: "auto" }, groupName(group)), promptOf(group.prompt),
    note ? make("p", { class: "fault warn", dir: "auto" }, note) : null,
    make("div", { class: "faces", role: "group", "aria-label": "Pattern and products" }, ...panels.map(face)), faultOf(row),
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", { dir: "auto" }, value)])));
}

/* Moving: one pattern is the current one in every view. */
function go(group) {
  if (cells.has(current)) cells.get(current).tabIndex = -1;
  if (group !== current) at = 0;
  current = group;
  if (view === "sheet") lay();
  else showLarge();
  const place = view === "sheet" ? cells.get(group) : byId("large").querySelector("[tabindex='0']");
  place.tabIndex = 0;
  if (!byId("bar").contains(document.activeElement)) place.focus({ preventScroll: true });
  if (view !== "one") place.scrollIntoView({ block: "nearest" });
  const now = [decisionOf(group).verdict, view];
  for (const button of byId("buttons").querySelectorAll("[data-pressed]")) button.setAttribute("aria-pressed", String(now.includes(button.dataset.pressed)));
}

function step(by, suits = () => true) {
  let index = shown.indexOf(current) + by;
  while (shown[index] && !suits(shown[index])) index += Math.sign(by);
  if (!shown[index]) say(`No more here. ${counted(openCount(), "pattern")} undecided.`);
  go(shown[index] ?? current);
}

function turn(by) {
  at = (at + by + panels.length) % panels.length;
  go(current);
}

function show(name) {
  view = document.body.dataset.view = name;
  byId("sheet").hidden = name !== "sheet";
  byId("large").hidden = name === "sheet";
  at = 0;
  if (name === "sheet") layAnew();
  else scrollTo(0, 0);
  go(current);
}

const crop = { x: 50, y: 50 };

function moveCrop(axis, share) {
  crop[axis] = Math.max(0, Math.min(100, share));
  document.body.style.setProperty(`--${axis}`, `${crop[axis]}%`);
}

/* What is shown, and how much of it is decided */
const KINDS = {
  status: [STATUSES, (group) => group.statuses],
  verdict: [VERDICTS, (group) => (group.made ? [decisionOf(group).verdict] : [])],
  cause: [{}, (group) => group.rows.map((index) => rows[index].cause).filter((cause) => cause != null)],
};

function matchesRow(index) {
  const row = rows[index];
  row.text ??= [row.sku, row.prompt, row.category, ...(row.selections ?? []).flat(), row.product, row.pattern, row.code, row.error].join("\n").toLowerCase();
  return terms.every((term) => row.text.includes(term));
}

function matches(group) {
  const kinds = [...chips].map((chip) => chip.split(":")[0]);
  return kinds.every((kind) => KINDS[kind][1](group).some((name) => chips.has(`${kind}:${name}`))) && group.rows.some(matchesRow);
}

function filter() {
  shown = groups.filter(matches);
  if (!shown.includes(current)) current = shown.find((group) => group.made && decisionOf(group).verdict === "undecided") ?? shown[0] ?? null;
  byId("grid").hidden = !shown.length;
  byId("empty").hidden = shown.length > 0;
  layAnew();
  soon();
}

function clear() {
  terms = [];
  chips.clear();
  byId("query").value = "";
  filter();
}

const openCount = () => groups.filter((group) => group.made && ["undecided", "later"].includes(decisionOf(group).verdict)).length;

let planned = false;

/* Counts follow a little later, so that no picture waits for them. */
function soon() {
  if (!planned) setTimeout(() => { planned = false; count(); }, 100);
  planned = true;
}

function count() {
  const counts = {};
  const matching = groups.filter((group) => group.rows.some(matchesRow));
  for (const group of matching) for (const [kind, [, namesOf]] of Object.entries(KINDS)) for (const name of namesOf(group)) counts[`${kind}:${name}`] = (counts[`${kind}:${name}`] ?? 0) + 1;
  for (const button of document.querySelectorAll("[data-chip]")) {
    const id = button.dataset.chip;
    if (button.lastChild.nodeName === "B") button.lastChild.textContent = number(id ? counts[id] ?? 0 : matching.length);
    button.hidden = id && !counts[id] && !chips.has(id);
    button.setAttribute("aria-pressed", String(id ? chips.has(id) : !chips.size));
  }
  const waiting = new Set(unsent.map(({ item }) => item));
  const saved = [...verdicts].filter(([item, { verdict }]) => !waiting.has(item) && verdict !== "undecided").length;
  const left = unsent.length ? `${number(unsent.length)} not yet saved` : "";
  const refused = events.filter((event) => event.refused).length;
  byId("saved").textContent = [`${number(saved)} saved`, left, refused ? `${number(refused)} refused` : "", trouble, draft ? "" : "this browser keeps no draft"].filter(Boolean).join(" · ");
  byId("saved").dataset.kept = kept;
  byId("save-file").hidden = served ? !trouble || !unsent.length : !verdicts.size;
  byId("tally").textContent = `${counted(shown.length, "pattern")} with ${counted(shown.reduce((sum, group) => sum + group.rows.length, 0), "row")}, ${number(openCount())} undecided`;
  countBuys();
}

/* What buys: named with count, sum and command, and never done by a decision. */
function money(amount, currency = run.currency) {
  if (amount == null) return "at a price that is not stated here";
  const format = new Intl.NumberFormat(undefined, currency ? { style: "currency", currency } : { minimumFractionDigits: 2 });
  return format.format(amount / 10 ** format.resolvedOptions().maximumFractionDigits);
}

function countBuys() {
  const again = groups.filter((group) => decisionOf(group).verdict === "again");
  const products = again.reduce((sum, group) => sum + group.rows.length, 0);
  const costs = again.every((group) => group.price != null) ? again.reduce((sum, group) => sum + group.price, 0) : null;
  const waiting = served && run.approval;
  byId("buys").hidden = !again.length && !waiting;
  byId("buys").textContent = waiting ? "Approve…" : `Remake ${number(again.length)}…`;
  byId("buy-title").textContent = waiting ? "A plan waits for an approval" : `${counted(again.length, "pattern")} to remake`;
  byId("buy-text").textContent = waiting ? `Approve ${counted(waiting.items, "item")}, ${money(waiting.amount, waiting.currency)}? This buys them.`
    : `${counted(again.length, "new take")} and up to ${counted(products, "product")} on them: ${money(costs)}. This page buys nothing; the command asks before it does.`;
  byId("buy-command").textContent = waiting ? "" : `patternmill remake --catalog ${run.catalog} --environment ${run.environment}${served ? "" : " --picks decisions.csv"}`;
  byId("approve").hidden = !waiting;
}

async function approve() {
  const answer = await post("/approve", { digest: run.approval.digest }).catch(() => null);
  if (answer?.ok) run.approval = null;
  say(answer?.ok ? "Approved." : "Not approved: the server refused it or does not answer.");
  soon();
}

/* The tools */
function chip(id, kind, ...content) {
  const toggle = () => {
    if (!id) chips.clear();
    else if (!chips.delete(id)) chips.add(id);
    filter();
  };
  return make("button", { type: "button", class: kind, "data-chip": id, "aria-pressed": "false", onclick: toggle }, ...content);
}

function fillTools() {
  const sum = run.causes.reduce((total, cause) => total + cause.count, 0);
  byId("causes").hidden = !sum;
  byId("causes-title").textContent = sum === 1 ? "1 row needs attention" : `${number(sum)} rows need attention`;
  byId("cause-list").append(...run.causes.map((cause, index) => make("li", {}, chip(`cause:${index}`, "cause",
    make("span", { class: "sum" }, `${number(cause.count)} ×`), make("span", {}, cause.message || cause.code, " ", make("em", {}, cause.remedy)), make("code", {}, cause.code)))));
  byId("chips").append(chip("", "chip", "All", make("b")));
  for (const [kind, [all, namesOf]] of Object.entries(KINDS)) {
    const present = new Set(groups.flatMap(namesOf));
    const names = Object.keys(all).filter((name) => kind === "verdict" || present.has(name));
    byId("chips").append(...names.map((name) => chip(`${kind}:${name}`, `chip ${all[name][2]}`, make("i", { "aria-hidden": "true" }, all[name][0]), all[name][1], make("b"))));
  }
}

function fillBar() {
  for (const [key, glyph, word, act, what] of ACTIONS) {
    const name = key === " " ? "Space" : key.toUpperCase();
    byId("key-list").append(make("dt", {}, make("kbd", {}, name)), make("dd", {}, what));
    if (!word) continue;
    const press = (event) => { if (event.detail) event.currentTarget.blur(); if (current) act(); };
    byId("buttons").append(make("button", {
      type: "button", title: what, onclick: press, "data-pressed": Object.keys(VERDICTS).find((name) => VERDICTS[name][0] === glyph && name !== "undecided") ?? Object.keys(MOVES).find((name) => name === word.toLowerCase()),
    }, make("i", { "aria-hidden": "true" }, glyph), make("span", {}, word), make("kbd", { "aria-hidden": "true" }, name)));
  }
}

/* Keys and gestures */
const MOVES = {
  sheet: { ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => step(columns), ArrowUp: () => step(-columns), Home: () => go(shown[0]), End: () => go(shown.at(-1)) },
  one: { ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => turn(1), ArrowUp: () => turn(-1), Escape: () => show("sheet") },
  compare: { ArrowRight: () => turn(1), ArrowLeft: () => turn(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), Escape: () => show("sheet") },
};
const CROPS = { ArrowRight: ["x", 10], ArrowLeft: ["x", -10], ArrowDown: ["y", 10], ArrowUp: ["y", -10] };

function onKey(event) {
  const single = byId("single-keys").checked;
  const isButton = event.target.closest("button, a");
  const [axis, by] = CROPS[event.key] ?? [];
  if (event.shiftKey && axis) return moveCrop(axis, crop[axis] + by);
  if (asked && event.key === "Escape") return askWhy(null);
  if (asked && single && /^[1-9]$/.test(event.key)) return because(REASONS[event.key - 1]);
  if (event.key === "Enter") return isButton ? false : asked ? byId("why").querySelector("input").focus() : show("one");
  if (MOVES[view][event.key]) return void (askWhy(null), MOVES[view][event.key]());
  // On a keyboard of other letters the place of the key counts.
  const key = /^[!-~ ]$/.test(event.key) ? event.key.toLowerCase() : event.code.replace("Key", "").toLowerCase();
  const action = ACTIONS.find(([name]) => name === key);
  if (!action || event.repeat || !single || (isButton && key === " ")) return false;
  return action[3]();
}

function listen() {
  let waiting;
  byId("query").addEventListener("input", (event) => {
    clearTimeout(waiting);
    terms = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    waiting = setTimeout(filter, 120);
  });
  byId("clear").addEventListener("click", clear);
  byId("save-file").addEventListener("click", saveFile);
  byId("buys").addEventListener("click", () => byId("buy").showModal());
  byId("approve").addEventListener("click", approve);
  byId("single-keys").checked = localStorage.getItem("patternmill keys") !== "off";
  byId("single-keys").addEventListener("change", (event) => localStorage.setItem("patternmill keys", event.target.checked ? "on" : "off"));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !current || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input:not([type=checkbox])")) return void (event.key === "Escape" && (event.target.blur(), filter(), current && go(current)));
    if (onKey(event) !== false) event.preventDefault();
  });
  addEventListener("scroll", () => lay(), { passive: true });
  addEventListener("resize", () => view === "sheet" && layAnew());
  addEventListener("online", send);
  new ResizeObserver(([bar]) => document.body.style.setProperty("--bar", `${bar.target.offsetHeight}px`)).observe(byId("bar"));
  listenToPointer(byId("large"));
}

function listenToPointer(place) {
  let from = null;
  const isZoomed = () => document.body.hasAttribute("data-zoom");
  place.addEventListener("pointerdown", (event) => { from = event.pointerType !== "mouse" && event.target.closest(".stage") ? event : null; });
  place.addEventListener("pointermove", (event) => {
    const stage = event.target.closest(".stage")?.getBoundingClientRect();
    if (!stage || !isZoomed()) return;
    moveCrop("x", (100 * (event.clientX - stage.left)) / stage.width);
    moveCrop("y", (100 * (event.clientY - stage.top)) / stage.height);
  });
  place.addEventListener("pointerup", (event) => {
    if (!from || isZoomed()) return;
    const [x, y] = [event.clientX - from.clientX, event.clientY - from.clientY];
    if (Math.max(Math.abs(x), Math.abs(y)) < SWIPE) return;
    if (Math.abs(x) > Math.abs(y)) judge(x > 0 ? "pick" : "reject");
    else judge(y < 0 ? "again" : "later");
  });
}

fillTools();
fillBar();
filter();
load().then(() => {
  listen();
  current = null;
  filter();
  send();
  document.documentElement.dataset.ready = "true";
});

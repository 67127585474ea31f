"use strict";
// Builds the page of elements and text, never of markup, so that no prompt or answer can become part of it.
const STATUSES = {
  succeeded: ["●", "Succeeded", "good"], failed: ["●", "Failed", "bad"], refused: ["●", "Refused", "bad"], held: ["●", "Held", "bad"],
  in_doubt: ["●", "In doubt", "warn"], waiting: ["●", "Waiting", "warn"], cancelled: ["●", "Cancelled", "rest"], not_started: ["●", "Not started", "rest"],
  to_choose: ["●", "To choose", "warn"], discarded: ["●", "Discarded", "rest"],
};
/* What needs attention comes first. */
const RANK = ["failed", "refused", "held", "in_doubt", "waiting", "cancelled", "not_started", "to_choose", "discarded", "succeeded"];
/* The statuses that later decisions may change. */
const BY_DECISION = ["to_choose", "discarded"];
const VERDICTS = {
  undecided: ["○", "Undecided", "rest"], pick: ["✓", "Picked", "good"], reject: ["✕", "Rejected", "bad"], again: ["↻", "Again", "warn"], later: ["⋯", "Later", "rest"],
};
const REASONS = ["Too dark", "Too bright", "Wrong colours", "Too busy", "Too plain", "Wrong motif", "Seam shows", "Blurred", "Off the product"];
/* Key, glyph, word, the verdict or view that its button shows as pressed, what it does, and its entry in the list of keys. */
const KEYS = [
  ["p", "✓", "Pick", "pick", () => judge("pick"), "Pick"],
  ["x", "✕", "Reject", "reject", () => judge("reject"), "Reject"],
  ["a", "↻", "Again", "again", () => judge("again"), "Ask for another take; then 1 to 9 says why, or Enter and a note"],
  [" ", "⋯", "Later", "later", () => judge("later"), "Decide later: it stays undecided"],
  ["u", "○", "Clear", null, () => judge("undecided"), "Take the decision back"],
  ["z", "↶", "Undo", null, () => undo(), "Undo, also after the page was closed"],
  ["s", "☑", "Select", null, () => select(current), "Select or deselect; the next decision is about all selected"],
  ["S", "⊞", "All shown", null, () => selectShown(), "Select all shown, or none"],
  ["g", "▦", "Sheet", "sheet", () => show("sheet"), "All patterns"],
  ["e", "▢", "One", "one", () => show("one"), "One pattern on the whole screen; ↑ ↓ show its takes and products"],
  ["c", "◫", "Compare", "compare", () => show("compare"), "Takes side by side; ← → choose one, ↑ ↓ show other patterns"],
  ["?", "⌨", "Keys", null, () => byId("keys").showModal(), "These keys"],
  ["/", null, null, null, () => { show("sheet"); byId("query").focus(); }, "Search"],
];
/* Pixels between cards and of a swipe, decisions sent at once, milliseconds until they are sent again or a command is asked about. */
const [GAP, SWIPE, BATCH, RESEND, POLL] = [22, 60, 200, 1500, 1000];
const [MOST_FACES, MOST_NAMED, MOST_FETCHED] = [100, 4, 4];

const byId = (id) => document.getElementById(id);
const read = (id) => JSON.parse(byId(id).textContent);
const run = read("run-data");
const rows = read("row-data");
const rankOf = (group) => RANK.findIndex((name) => group.rows.some((index) => rows[index].status === name));
const groups = read("pattern-data").sort((first, second) => rankOf(first) - rankOf(second));
const owners = new Map(groups.flatMap((group) => group.takes.map((take) => [take.item, group])));
/* The secret of this tab, which the browser itself never sends. */
const session = run.served && sessionStorage.getItem("patternmill");
const ask = (path, how = {}) => fetch(path, { ...how, headers: { ...how.headers, authorization: `Bearer ${session}` } });
const post = (path, value) => ask(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(value) });
const number = (value) => value.toLocaleString();
const counted = (count, word) => `${number(count)} ${word}${count === 1 ? "" : "s"}`;
const nameOf = (row) => row.sku || `Row ${row.line}`;
const rowsOf = (group) => group.rows.map((index) => rows[index]);
/* A decision is about every row that shares the pattern: the others are named after the first. */
const alsoOf = ({ rows: [, ...others] }) => (others.length ? `also ${others.slice(0, MOST_NAMED).map((index) => nameOf(rows[index])).join(", ")}${others.length > MOST_NAMED ? ` and ${number(others.length - MOST_NAMED)} more` : ""}` : "");
const groupName = (group) => [nameOf(rows[group.rows[0]]), alsoOf(group)].filter(Boolean).join(", ");
const say = (text) => { byId("status").textContent = text; };
const chips = new Set();
const selected = new Set();
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

/* Decisions: events in the order in which they were made, stored in the browser until they are saved elsewhere. */
const verdicts = new Map();
const events = [];
let unsent = [];

/* The place of a decision among all: those made in this browser come after those that the page brought. */
const placeOf = (decision) => decision.sequence ?? decision.number;

/* The take that the rows of a pattern are built on, by the rules of patternmill/planning/takes.py. */
function choiceOf(group) {
  const takes = group.takes.map((take) => ({ ...take, decision: verdicts.get(take.item) }));
  const wanted = takes.filter(({ decision }) => ["pick", "again"].includes(decision?.verdict));
  const last = wanted.reduce((latest, take) => (latest && placeOf(latest.decision) > placeOf(take.decision) ? latest : take), null);
  if (last?.decision.verdict === "pick") return { take: last.take, decision: last.decision };
  const above = wanted.filter(({ decision }) => decision.verdict === "again").at(-1);
  const made = [...takes, ...(group.open ?? []).map((take) => ({ take }))].filter(({ take }) => take > (above?.take ?? 0));
  const usable = made.filter(({ decision }) => decision?.verdict !== "reject");
  if (!made.length) return { take: (above?.take ?? 0) + 1, decision: above?.decision };
  if (!usable.length) return { status: "discarded", decision: made.at(-1).decision };
  return usable.length === 1 ? { take: usable[0].take, decision: usable[0].decision } : { status: "to_choose", take: usable[0].take, decision: usable[0].decision };
}

/* The take that stands for a pattern: decisions are about it unless another one is looked at. */
function takeOf(group) {
  const { take } = choiceOf(group);
  return group.takes.find((other) => other.take === take) ?? group.takes.at(-1);
}

function decisionOf(group) {
  const { take, status, decision = { verdict: "undecided" } } = choiceOf(group);
  const of = group.takes.length > 1 && take && decision.verdict === "pick" ? `: take ${take}` : "";
  return { ...decision, word: status === "to_choose" ? STATUSES[status][1] : VERDICTS[decision.verdict][1] + of + (decision.changed ? ", of another picture" : "") };
}

function statusOfRow(group, row) {
  const { status, take } = choiceOf(group);
  if (status || !BY_DECISION.includes(row.status)) return status ?? row.status;
  const { pattern } = group.takes.find((other) => other.take === take) ?? {};
  return pattern && row.pattern === pattern ? "succeeded" : "not_started";
}

const statusesOf = (group) => RANK.filter((name) => rowsOf(group).some((row) => statusOfRow(group, row) === name));
const statusOf = (group) => statusesOf(group)[0];

/* Over the network, which is not encrypted, browsers have no randomUUID. */
const newId = () => crypto.getRandomValues(new Uint32Array(4)).join("-");

function decide({ item, picture: address, digest }, verdict, note = "", link = {}) {
  const was = verdicts.get(item);
  const event = {
    number: Math.max(Date.now(), (events.at(-1)?.number ?? 0) + 1), id: newId(), item, picture: digests.get(address) ?? digest ?? "", verdict, note,
    at: new Date().toISOString(), cell: run.cell, was: { verdict: was?.verdict, note: was?.note }, saved: false, ...link,
  };
  events.push(event);
  unsent.push(event);
  verdicts.set(item, event);
  return event;
}

/* What was decided together is stored, sent and undone together. */
function commit(made) {
  keep(made);
  send();
  for (const { item } of made) dress(owners.get(item));
  const [{ verdict, note, item }] = made;
  say(`${VERDICTS[verdict][1]}: ${made.length > 1 ? counted(made.length, "pattern") : groupName(owners.get(item))}${note ? `, ${note}` : ""}`);
  soon();
}

// Another take comes after the highest one, whichever is looked at.
const targetOf = (group, verdict, panel) => (verdict === "again" ? group.takes.at(-1) : panel?.item ? panel : takeOf(group));

function judge(verdict) {
  const panel = view !== "sheet" ? panels[at] : null;
  const chosen = selected.size && !panel ? [...selected] : current.made ? [current] : [];
  if (!chosen.length) return say("There is no picture to decide on here.");
  askWhy(verdict === "again" && !selected.size ? targetOf(current, verdict) : null);
  const batch = newId();
  const made = chosen.map((group) => decide(targetOf(group, verdict, panel), verdict, "", { batch }));
  selected.clear();
  commit(made);
  if (made.length > 1) return go(current);
  if (view === "compare" && verdict === "reject" && at < panels.length - 1) turn(1);
  else step(1, (group) => group.made);
}

function undo() {
  const undone = new Set(events.map((event) => event.undoes));
  const canUndo = (event) => !event.undoes && !event.amends && !event.refused && !undone.has(event.id) && owners.has(event.item);
  const last = events.findLast(canUndo);
  if (!last) return say("There is nothing to undo.");
  askWhy(null);
  const together = events.filter((event) => canUndo(event) && (event === last || (last.batch && event.batch === last.batch)));
  commit(together.map((event) => decide({ item: event.item, digest: event.picture }, event.was.verdict ?? "undecided", event.was.note ?? "", { undoes: event.id })));
  if (!shown.includes(owners.get(last.item))) clear();
  go(owners.get(last.item));
}

function select(group) {
  if (group.made && !selected.delete(group)) selected.add(group);
  dress(group);
  soon();
}

function selectShown() {
  const choices = shown.filter((group) => group.made);
  const isAll = choices.every((group) => selected.has(group));
  const before = [...selected];
  selected.clear();
  if (!isAll) choices.forEach((group) => selected.add(group));
  [...before, ...choices].forEach(dress);
  say(`${number(selected.size)} selected`);
  soon();
}

/* The reason for another take: asked while the next picture is shown, and given by one more key or not at all. */
let asked = null;

function askWhy(target) {
  asked = target;
  byId("why").hidden = !target;
  if (!target) return;
  const note = make("input", { placeholder: "Note (Enter)", "aria-label": "Note", maxlength: 500 });
  note.addEventListener("keydown", (event) => event.key === "Enter" && because(note.value.trim()));
  byId("why").replaceChildren(make("span", { dir: "auto" }, `${nameOf(rowsOf(owners.get(target.item))[0])}: why again?`),
    ...REASONS.map((reason, index) => make("button", { type: "button", class: "plain", onclick: () => because(reason) }, make("kbd", {}, index + 1), reason)), note);
}

function because(note) {
  if (note) commit([decide(asked, "again", note, { amends: true })]);
  document.activeElement.blur();
  askWhy(null);
  go(current);
}

/* The draft is a database of the browser: unlike local storage, it says when it is on the disk. */
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
}

async function load() {
  try {
    // Named by the session, so that nothing is read that another server at this address has left.
    const asking = indexedDB.open(`patternmill ${run.id} ${session ?? ""}`.trim(), 1);
    asking.onupgradeneeded = () => asking.result.createObjectStore("events", { keyPath: ["number", "id"] });
    draft = await done(asking);
    events.push(...await done(draft.transaction("events").objectStore("events").getAll()));
  } catch {
    draft = null;
  }
  unsent = events.filter((event) => !event.saved && !event.refused);
  const takes = new Map(groups.flatMap((group) => group.takes).map((take) => [take.item, take]));
  for (const { item, decision } of takes.values()) if (decision) verdicts.set(item, decision);
  for (const event of events) {
    // A decision no longer counts once its picture was replaced.
    const digest = takes.get(event.item)?.digest;
    if (event.refused || (event.picture && digest && event.picture !== digest)) continue;
    // A served page brings what its server has saved.
    if (event.saved && (run.served || event.at < verdicts.get(event.item)?.at)) continue;
    verdicts.set(event.item, event);
  }
}

/* On a served page each decision is sent at once and in order, and again under the same ID until it is saved. */
let trouble = "";
let sending = false;

async function send() {
  if (!run.served || sending || !unsent.length) return;
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

async function sendBatch(batch) {
  const answer = await post("/decisions", batch.map(({ id, item, picture, verdict, note, at }) => ({ id, item, picture, verdict, note, at })));
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

/* On a page from disk: decisions.csv, with the last decision about each take on a line for each row that shares it. */
const defuse = (cell) => (/^'*(?:[\t\r]|\s*[=+\-@＝＋－＠])/.test(cell) ? `'${cell}` : cell);
const quoted = (cell) => `"${defuse(String(cell)).replaceAll('"', '""')}"`;

function saveFile() {
  const lines = [["run", "sku", "take", "decision", "note"]];
  // What the page brought is recorded already, and has no cell.
  for (const [item, { verdict, note, cell }] of [...verdicts].filter(([, { cell }]) => cell).sort(([, first], [, second]) => first.number - second.number)) {
    const { take } = owners.get(item).takes.find((other) => other.item === item);
    for (const row of rowsOf(owners.get(item))) lines.push([cell, row.sku, take, verdict, note]);
  }
  const text = `\ufeff${lines.map((cells) => cells.map(quoted).join(",")).join("\r\n")}\r\n`;
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href: address, download: "decisions.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
  // A server that cannot be reached now still needs them.
  if (run.served) return;
  for (const event of unsent) event.saved = true;
  keep(unsent);
  unsent = [];
  soon();
}

/* A picture covers the prompt on its tile, which is seen until the picture is there. */
function tile(group) {
  const status = statusOf(group);
  const [, word, colour] = STATUSES[status];
  const text = status !== "succeeded" ? word + (group.made ? " · pattern made" : "") : run.served ? "The picture is being made" : "No picture yet: run patternmill look";
  return make("span", { class: `tile ${colour}` }, make("q", { dir: "auto" }, group.prompt || "No prompt"), make("small", {}, text));
}

function picture(address, how = {}) {
  const image = make("img", { alt: "", decoding: "async", referrerpolicy: "no-referrer", draggable: "false", ...how, src: run.served ? null : address });
  image.addEventListener("error", () => image.remove(), { once: true });
  if (run.served) want({ image, address });
  return image;
}

/* On a served page the script fetches pictures: those in the window first, and few at a time, so that no decision waits. */
let wanted = [];
const digests = new Map();
let fetching = 0;

function want(picture) {
  wanted.push(picture);
  setTimeout(fetchNext);
}

function isInWindow({ image }) {
  const { top, bottom } = image.parentElement.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

function fetchNext() {
  // What has left the page is not wanted any more.
  wanted = wanted.filter(({ image }) => image.isConnected);
  while (fetching < MOST_FETCHED && wanted.length) {
    const next = wanted.find(isInWindow) ?? wanted[0];
    wanted.splice(wanted.indexOf(next), 1);
    fetching += 1;
    fill(next).finally(() => { fetching -= 1; fetchNext(); });
  }
}

async function fill({ image, address }) {
  try {
    const answer = await ask(address);
    if (!answer.ok) throw new Error(answer.status);
    digests.set(address, answer.headers.get("picture-digest"));
    image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
    image.src = URL.createObjectURL(await answer.blob());
  } catch {
    const text = image.parentElement?.querySelector(".tile.good small");
    if (text) text.textContent = "No picture";
    image.dispatchEvent(new Event("error"));
  }
}

function badge([glyph, word, colour], text = word) {
  return make("span", { class: `badge ${colour}` }, make("i", { "aria-hidden": "true" }, glyph), text);
}

function marks({ verdict, word }, isSelected = false) {
  return make("div", { class: "marks" }, isSelected ? badge(["☑", "Selected", "rest"]) : null, verdict !== "undecided" ? badge(VERDICTS[verdict], word) : null);
}

function promptOf(text) {
  return make("p", { class: text ? "prompt" : "prompt none", dir: "auto" }, text || "No prompt");
}

function faultOf(group, row) {
  // A later decision counts more than what the run said.
  if ((!row?.error && !row?.remedy) || statusOfRow(group, row) !== row.status) return null;
  return make("p", { class: `fault ${STATUSES[row.status][2]}`, dir: "auto" }, row.error ?? "", make("em", {}, row.remedy ?? ""));
}

/* The sheet: all cards have one size, so that only those near the window need to exist. */
const cells = new Map();
let columns = 1;
let height = 0;

function layAnew() {
  const grid = byId("grid");
  if (view !== "sheet" || grid.hidden) return;
  cells.clear();
  grid.replaceChildren();
  const tracks = getComputedStyle(grid).gridTemplateColumns.split(" ");
  columns = tracks.length;
  grid.style.setProperty("--width", tracks[0]);
  height = parseFloat(getComputedStyle(grid).gridAutoRows) + GAP;
  grid.style.height = `${Math.ceil(shown.length / columns) * height}px`;
  lay();
}

function lay() {
  if (view !== "sheet" || !shown.length) return;
  const grid = byId("grid");
  const { top } = grid.getBoundingClientRect();
  const [first, last] = [-top - innerHeight, 2 * innerHeight - top].map((place) => columns * Math.floor(place / height));
  const near = new Set([shown.indexOf(current)]);
  for (let index = Math.max(0, first); index < Math.min(shown.length, last + columns); index++) near.add(index);
  for (const [group, cell] of cells) {
    if (near.has(cell.ariaPosInSet - 1)) continue;
    cell.remove();
    cells.delete(group);
  }
  for (const index of near) {
    if (cells.has(shown[index])) continue;
    const cell = card(shown[index]);
    Object.assign(cell, { ariaPosInSet: index + 1, ariaSetSize: shown.length });
    cell.style.gridArea = `${Math.floor(index / columns) + 1} / ${(index % columns) + 1}`;
    grid.insertBefore(cell, [...grid.children].find((other) => other.ariaPosInSet > index) ?? null);
  }
}

function card(group) {
  const [first] = rowsOf(group);
  const products = rowsOf(group).filter((row) => row.productPicture);
  const cell = make("div", { role: "option", class: "card", tabindex: group === current ? "0" : "-1" },
    make("div", { class: "open" }),
    make("div", { class: "strip" }, ...products.slice(0, 4).map((row) => picture(row.productPicture, { loading: "lazy" })),
      products.length > 4 ? `+${number(products.length - 4)}` : null),
    make("div", { class: "body" },
      make("div", { class: "top" }, make("span", { class: "sku", dir: "auto" }, nameOf(first)), make("span", { class: "kind", dir: "auto" }, alsoOf(group) || (first.category ?? ""))),
      promptOf(group.prompt), make("span", { class: "badge" })));
  cell.addEventListener("click", (event) => {
    const isOpened = group === current && document.activeElement === cell;
    if (selected.size || event.shiftKey || event.ctrlKey || event.metaKey) select(group);
    else if (isOpened) return show("one");
    go(group);
  });
  cells.set(group, cell);
  dress(group);
  return cell;
}

/* The picture of the take that stands for the pattern, which a decision may change. */
function showFace(place, group) {
  const address = takeOf(group)?.picture ?? "";
  if (place.dataset.shows !== address) place.replaceChildren(tile(group), ...(address ? [picture(address, { loading: "lazy" })] : []));
  place.dataset.shows = address;
}

function dress(group) {
  const cell = cells.get(group);
  if (!cell) return;
  const [decision, status] = [decisionOf(group), STATUSES[statusOf(group)]];
  const [open, , body] = cell.children;
  cell.className = `card ${status[2]}`;
  cell.dataset.verdict = decision.verdict;
  cell.setAttribute("aria-selected", String(selected.has(group)));
  cell.setAttribute("aria-label", [groupName(group), status[1], group.made && decision.word].filter(Boolean).join(", "));
  showFace(open, group);
  open.querySelector(".tile").replaceWith(tile(group));
  open.querySelector(".marks")?.remove();
  open.append(marks(decision, selected.has(group)));
  body.querySelector(".fault")?.remove();
  body.querySelector(".badge").replaceWith(...[faultOf(group, rowsOf(group).find((row) => row.error)), badge(status)].filter(Boolean));
}

/* The large views: `one` shows a pattern with its takes and products, `compare` its takes side by side, cropped alike. */
let panels = [];
let at = null;

function facesOf(group) {
  const takes = group.takes.map((take) => ({ ...take, group, label: group.takes.length > 1 ? `Take ${take.take}` : "Pattern" }));
  const products = rowsOf(group).slice(0, MOST_FACES).map((row) => ({ group, row, picture: row.productPicture, label: nameOf(row) }));
  return view === "compare" && takes.length ? takes : [...takes, ...products];
}

function showLarge() {
  panels = facesOf(current);
  // Begin with the take that stands for the pattern.
  at = at ?? Math.max(0, panels.findIndex(({ item }) => item && item === takeOf(current)?.item));
  byId("large").replaceChildren(make("h1", { class: "visually-hidden" }, groupName(current)), ...(view === "one" ? [figureOf(panels[at], at), wordsOf(current)] : panels.map(figureOf)));
}

function figureOf(panel, index) {
  const { group, label, item } = panel;
  // A take shows the decision about itself, and a product the one about its pattern.
  const { verdict } = verdicts.get(item) ?? { verdict: "undecided" };
  const decision = item ? { verdict, word: VERDICTS[verdict][1] } : decisionOf(group);
  const name = view === "one" ? groupName(group) : label;
  const figure = make("figure", { role: "group", tabindex: index === at ? "0" : "-1", "aria-label": `${name}, ${decision.word}` },
    make("div", { class: "stage" }, tile(group), panel.picture ? picture(panel.picture, { alt: `${label} of ${groupName(group)}` }) : null, marks(decision)));
  if (view === "one") return figure;
  figure.addEventListener("click", () => turn(index - at));
  figure.append(make("h2", { dir: "auto" }, label), promptOf(group.prompt));
  return figure;
}

function wordsOf(group) {
  const row = panels[at].row ?? rows[group.rows[0]];
  const { note } = decisionOf(group);
  const own = run.columns.map((name, index) => [name, row.own?.[index]]);
  const facts = [["Sku", row.sku], ["Status", STATUSES[statusOfRow(group, row)][1]], ["Category", row.category], ...(row.selections ?? []), ...own, ["Row in the file", String(row.line)],
    ["Ordered", row.ordered], ["Error code", row.code], ["Product", row.product], ["Pattern", row.pattern]].filter(([, value]) => value);
  const face = (panel, index) => make("button", { type: "button", "aria-pressed": String(index === at), onclick: () => turn(index - at) },
    panel.picture ? picture(panel.picture, { loading: "lazy" }) : null, make("span", { dir: "auto" }, panel.label));
  return make("div", { class: "words" },
    make("p", { class: "count" }, `${number(shown.indexOf(group) + 1)} of ${number(shown.length)}`),
    make("h2", { dir: "auto" }, groupName(group)), promptOf(group.prompt),
    note ? make("p", { class: "fault warn", dir: "auto" }, note) : null,
    make("div", { class: "faces", role: "group", "aria-label": "Pattern and products" }, ...panels.map(face)), faultOf(group, row),
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", { dir: "auto" }, name), make("dd", { dir: "auto" }, value)])));
}

/* Moving: in every view one pattern is the current one. */
function go(group) {
  if (cells.has(current)) cells.get(current).tabIndex = -1;
  if (group !== current) at = null;
  current = group;
  if (view === "sheet") lay();
  else showLarge();
  const place = view === "sheet" ? cells.get(group) : byId("large").querySelector("[tabindex='0']");
  place.tabIndex = 0;
  if (!byId("bar").contains(document.activeElement)) place.focus({ preventScroll: true });
  if (view !== "one") place.scrollIntoView({ block: "nearest" });
  showPressed();
}

/* Show on the buttons the view, the decision about the current pattern, and the rows that a decision affects. */
function showPressed() {
  const now = [view, current && decisionOf(current).verdict];
  for (const button of byId("buttons").querySelectorAll("[data-pressed]")) {
    button.setAttribute("aria-pressed", String(now.includes(button.dataset.pressed)));
    if (current && button.dataset.pressed in VERDICTS) button.title = [button.dataset.what, alsoOf(current)].filter(Boolean).join("; ");
  }
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
  at = null;
  if (name === "sheet") layAnew();
  else scrollTo(0, 0);
  go(current);
}

/* What is shown, and how much of it is decided. */
const KINDS = {
  status: [STATUSES, statusesOf],
  verdict: [VERDICTS, (group) => (group.made ? [decisionOf(group).verdict] : [])],
};

function matchesRow(row) {
  row.text ??= [row.sku, row.prompt, row.category, ...(row.selections ?? []).flat(), ...(row.own ?? []), row.product, row.pattern, row.code, row.error].join("\n").toLowerCase();
  return terms.every((term) => row.text.includes(term));
}

function matches(group) {
  const kinds = [...chips].map((chip) => chip.split(":")[0]);
  return kinds.every((kind) => KINDS[kind][1](group).some((name) => chips.has(`${kind}:${name}`))) && rowsOf(group).some(matchesRow);
}

function filter() {
  shown = groups.filter(matches);
  if (!shown.includes(current)) current = shown.find((group) => group.made && decisionOf(group).verdict === "undecided") ?? shown[0] ?? null;
  byId("grid").hidden = !shown.length;
  byId("empty").hidden = shown.length > 0;
  layAnew();
  showPressed();
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

/* Count a little later, so that no picture waits for it. */
function soon() {
  if (!planned) setTimeout(() => { planned = false; count(); }, 100);
  planned = true;
}

function count() {
  const counts = {};
  const matching = groups.filter((group) => rowsOf(group).some(matchesRow));
  for (const group of matching) for (const [kind, [, namesOf]] of Object.entries(KINDS)) for (const name of namesOf(group)) counts[`${kind}:${name}`] = (counts[`${kind}:${name}`] ?? 0) + 1;
  for (const button of document.querySelectorAll("[data-chip]")) {
    const id = button.dataset.chip;
    button.lastChild.textContent = number(id ? counts[id] ?? 0 : matching.length);
    button.hidden = id && !counts[id] && !chips.has(id);
    button.setAttribute("aria-pressed", String(id ? chips.has(id) : !chips.size));
  }
  const waiting = new Set(unsent.map(({ item }) => item));
  const saved = [...verdicts].filter(([item, { verdict }]) => !waiting.has(item) && verdict !== "undecided").length;
  const refused = events.filter((event) => event.refused).length;
  byId("saved").textContent = [`${number(saved)} saved`, selected.size ? `${number(selected.size)} selected` : "", unsent.length ? `${number(unsent.length)} not yet saved` : "",
    refused ? `${number(refused)} refused` : "", trouble, draft ? "" : "this browser stores no draft"].filter(Boolean).join(" · ");
  byId("save-file").hidden = run.served ? !trouble || !unsent.length : !verdicts.size;
  byId("tally").textContent = `${counted(shown.length, "pattern")} with ${counted(shown.reduce((sum, group) => sum + group.rows.length, 0), "row")}, ${number(openCount())} undecided`;
}

/* Commands that buy, approve or pause: each shows what the server would do now, and is confirmed once. */
const ACTIONS = {
  remake: ["Remake…", "To remake", "Nothing to remake: no row waits for another take, and each has the one that was picked."],
  order: ["Order…", "To order", "Nothing to order: nothing is picked, or all of it is ordered."],
  approve: ["Approve…", "A plan waits for approval"],
  pause: ["Pause…", `Pause ${run.catalog} in ${run.environment}?`],
};
let commands = [];
let offered = null;

function deal(title, lines, ...buttons) {
  const [dialog, focused] = [byId("deal"), byId("deal").contains(document.activeElement)];
  byId("deal-title").textContent = title;
  byId("deal-lines").replaceChildren(...lines.map(lineText));
  byId("deal-buttons").replaceChildren(...buttons, make("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Close"));
  if (!dialog.open) dialog.showModal();
  if (!dialog.contains(document.activeElement) || focused) byId("deal-buttons").firstChild.focus();
}

/* A line of a command's output; the address where a person pays becomes a link, and is stored nowhere. */
function lineText(line) {
  const [, before, address] = line.match(/^(.*Pay here: )(https?:\/\/\S+)$/) ?? [];
  return make("p", { dir: "auto" }, ...(address ? [before, make("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, address)] : [line]));
}

const button = (text, onclick) => make("button", { type: "button", class: "plain strong", onclick }, text);

/* The server's answer, or the reason why there is none. */
async function told(path, value) {
  try {
    const answer = await post(path, value);
    return await answer.json();
  } catch {
    return { error: "The server does not answer." };
  }
}

async function offer(name) {
  offered = name;
  const [, title, nothing] = ACTIONS[name];
  if (name === "pause") return offerPause(title);
  if (name === "approve") return offerApproval(title);
  if (commands.some((command) => command.name === name && command.code == null)) return showCommand(name);
  deal(title, ["Planning …"]);
  while (unsent.length && !trouble) await new Promise((wait) => setTimeout(wait, 50));
  const { plan, error } = await told(`/plans/${name}`, {});
  if (offered !== name) return;
  if (!plan) return deal(error ? "Not possible" : title, [error ?? nothing]);
  deal(`${title}: ${plan.sum}`, plan.lines, button(name === "order" ? "Open the checkout" : `Buy ${plan.sum}`, () => begin(name, plan.token)));
}

/* Ask for one confirmation, send it, and show the server's sentence or its reason. */
function offerOnce(title, line, word, path, value, done) {
  deal(title, [line], button(word, async () => {
    const { text, error } = await told(path, value());
    if (text) done(text);
    deal(text ? `${word}d` : `Not ${word.toLowerCase()}d`, [text ?? error]);
  }));
}

function offerPause(title) {
  const reason = make("input", { "aria-label": "Why", placeholder: "Why", maxlength: 200 });
  offerOnce(title, "Nothing more is created; jobs in flight are followed. Only `patternmill unpause` lifts it.", "Pause",
    "/pause", () => ({ reason: reason.value.trim() }), (text) => { byId("paused").textContent = text; });
  reason.addEventListener("keydown", ({ key }) => key === "Enter" && byId("deal-buttons").firstChild.click());
  byId("deal-lines").append(reason);
  reason.focus();
}

function offerApproval(title) {
  const { digest, text } = run.approval;
  offerOnce(title, `Approve ${text}? This buys them.`, "Approve", "/approve", () => ({ digest }), () => { byId("do-approve").hidden = true; });
}

async function begin(name, token) {
  deal(ACTIONS[name][1], ["Starting …"]);
  const { error } = await told(`/commands/${name}`, { token });
  if (error) return deal("Not started", [error], button("Look again", () => offer(name)));
  await watch();
}

/* Follow the commands that were started here, also after the page was reloaded. */
async function watch() {
  const answer = await ask("/commands").catch(() => null);
  if (answer?.ok) commands = await answer.json();
  const running = commands.filter(({ code }) => code == null);
  for (const [name, [word]] of Object.entries(ACTIONS)) byId(`do-${name}`)?.replaceChildren(running.some((command) => command.name === name) ? word.replace("…", " is running…") : word);
  if (byId("deal").open && commands.some(({ name }) => name === offered)) showCommand(offered);
  if (running.length) setTimeout(watch, POLL);
}

function showCommand(name) {
  const { lines, steps, code } = commands.findLast((command) => command.name === name);
  const title = code == null ? `${ACTIONS[name][0].replace("…", "")} is running` : code === 0 ? "Done" : `Ended with exit code ${code}`;
  const text = [...lines, ...(code === 0 || code === 3 ? [] : steps.slice(code == null ? -1 : -9))];
  if (byId("deal-title").textContent === title && byId("deal-lines").dataset.text === text.join()) return;
  deal(title, text.length ? text : ["Starting …"], ...(code != null ? [button("Reload the page", () => location.reload())] : []));
  byId("deal-lines").dataset.text = text.join();
}

/* The tools above the sheet, and the bar below. */
function chip(id, colour, ...content) {
  const toggle = () => {
    if (!id) chips.clear();
    else if (!chips.delete(id)) chips.add(id);
    filter();
  };
  return make("button", { type: "button", class: `chip ${colour}`, "data-chip": id, "aria-pressed": "false", onclick: toggle }, ...content, make("b"));
}

function fillTools() {
  byId("chips").append(chip("", "", "All"));
  for (const [kind, [all, namesOf]] of Object.entries(KINDS)) {
    const present = new Set(groups.flatMap(namesOf));
    const names = Object.keys(all).filter((name) => kind === "verdict" || present.has(name));
    byId("chips").append(...names.map((name) => chip(`${kind}:${name}`, all[name][2], make("i", { "aria-hidden": "true" }, all[name][0]), all[name][1])));
  }
  byId("paused").textContent = run.paused ?? "";
}

function fillBar() {
  for (const [key, glyph, word, pressed, act, what] of KEYS) {
    const name = { " ": "␣", S: "⇧S" }[key] ?? key.toUpperCase();
    byId("key-list").append(make("dt", {}, make("kbd", {}, name)), make("dd", {}, what));
    if (!word) continue;
    const onclick = (event) => { if (event.detail) event.currentTarget.blur(); if (current) act(); };
    byId("buttons").append(make("button", { type: "button", title: what, "data-what": what, "data-pressed": pressed, onclick },
      make("i", { "aria-hidden": "true" }, glyph), make("span", {}, word), make("kbd", { "aria-hidden": "true" }, name)));
  }
  for (const name of [...(run.actions ?? []), ...(run.approval ? ["approve"] : [])]) byId("do").append(make("button", { type: "button", class: "plain", id: `do-${name}`, onclick: () => offer(name) }, ACTIONS[name][0]));
}

/* Keys and gestures. */
const MOVES = {
  sheet: { ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => step(columns), ArrowUp: () => step(-columns), Home: () => go(shown[0]), End: () => go(shown.at(-1)) },
  one: { ArrowRight: () => step(1), ArrowLeft: () => step(-1), ArrowDown: () => turn(1), ArrowUp: () => turn(-1), Escape: () => show("sheet") },
  compare: { ArrowRight: () => turn(1), ArrowLeft: () => turn(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), Escape: () => show("sheet") },
};

function onKey(event) {
  const single = byId("single-keys").checked;
  const isButton = event.target.closest("button, a");
  if (asked && event.key === "Escape") return askWhy(null);
  if (asked && single && /^[1-9]$/.test(event.key)) return because(REASONS[event.key - 1]);
  if (event.key === "Enter") return isButton ? false : asked ? byId("why").querySelector("input").focus() : show("one");
  if (MOVES[view][event.key]) return void (askWhy(null), MOVES[view][event.key]());
  // On a keyboard with other letters the position of the key counts.
  const key = /^[!-~ ]$/.test(event.key) ? event.key.toLowerCase() : event.code.replace("Key", "").toLowerCase();
  const action = KEYS.find(([name]) => name === (event.shiftKey && key === "s" ? "S" : key));
  if (!action || event.repeat || !single || (isButton && key === " ")) return false;
  return action[4]();
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
  // The event comes a little later, when another plan may be asked for already.
  byId("deal").addEventListener("close", () => { if (!byId("deal").open) offered = null; });
  byId("single-keys").checked = localStorage.getItem("patternmill keys") !== "off";
  byId("single-keys").addEventListener("change", (event) => localStorage.setItem("patternmill keys", event.target.checked ? "on" : "off"));
  addEventListener("keydown", (event) => {
    // Enter held down would open a plan and then confirm it.
    if (event.repeat && event.key === "Enter") event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey || !current || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input:not([type=checkbox])")) return void (event.key === "Escape" && (event.target.blur(), filter(), current && go(current)));
    if (onKey(event) !== false) event.preventDefault();
  });
  addEventListener("online", send);
  // A new sign-in link, pasted into this tab.
  addEventListener("hashchange", () => location.hash && run.served && location.reload());
  addEventListener("scroll", lay, { passive: true });
  addEventListener("resize", layAnew);
  new ResizeObserver(([bar]) => document.body.style.setProperty("--bar", `${bar.target.offsetHeight}px`)).observe(byId("bar"));
  listenToPointer(byId("large"));
}

function listenToPointer(place) {
  let from = null;
  place.addEventListener("pointerdown", (event) => { from = event.pointerType !== "mouse" && event.target.closest(".stage") ? event : null; });
  place.addEventListener("pointerup", (event) => {
    const [x, y] = from ? [event.clientX - from.clientX, event.clientY - from.clientY] : [0, 0];
    if (Math.max(Math.abs(x), Math.abs(y)) < SWIPE) return;
    if (Math.abs(x) > Math.abs(y)) judge(x > 0 ? "pick" : "reject");
    else judge(y < 0 ? "again" : "later");
  });
}

fillTools();
fillBar();
load().then(() => {
  listen();
  filter();
  send();
  if (run.actions?.length) watch();
  document.documentElement.dataset.ready = "true";
});

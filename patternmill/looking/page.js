// The page of a catalog. With a session it asks its server each second; without one it is a gallery, and only shows.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const start = JSON.parse(byId("data").textContent);
  const isServed = "session" in start;
  const STEP = 60; // how many cards are added at a time: all of ten thousand would take a browser seconds
  const WORDS = { pick: "picked", reject: "rejected", again: "again", in_doubt: "in doubt", not_started: "not started" };
  const words = (name) => WORDS[name] ?? name;
  const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

  const cards = new Map(); // by ID
  const articles = new Map(); // elements, by the ID of their card
  const ticked = new Map(); // skus, by the key of their row
  const undo = []; // decisions as they were, the last one last
  const filter = { search: "", status: "", verdict: "", category: "" };
  let order = [], shown = [], limit = STEP, current = "", version = 0, state = {}, timer = 0, saying = 0;

  // Every text that is shown goes through here, as text.
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== "" && child !== null && child !== undefined));
    return element;
  }

  // ---- What is shown

  function render() {
    const visible = shown.slice(0, limit).map((id) => articles.get(id) ?? made(id));
    const feed = byId("cards");
    const focused = feed.contains(document.activeElement) ? document.activeElement : null;
    if (visible.length !== feed.children.length || visible.some((article, at) => feed.children[at] !== article)) {
      feed.replaceChildren(...visible);
      if (focused?.isConnected) focused.focus({ preventScroll: true });
    }
    visible.forEach((article, at) => {
      article.setAttribute("aria-posinset", at + 1);
      article.setAttribute("aria-setsize", shown.length);
      article.tabIndex = article.dataset.card === (current || shown[0]) ? 0 : -1;
    });
    byId("none").hidden = shown.length > 0;
  }

  function made(id) {
    const article = make("article", { "data-card": id, tabindex: -1, "aria-labelledby": `name${articles.size}` });
    articles.set(id, article);
    fill(article, cards.get(id));
    return article;
  }

  function fill(article, card) {
    const had = article.contains(document.activeElement) ? document.activeElement.dataset.do : "";
    const isOpen = article.querySelector("details")?.open;
    const figure = article.querySelector("figure");
    article.className = card.verdict;
    article.replaceChildren(
      figure?.dataset.of === card.picture ? figure : card.take ? picture(card.picture, card.prompt) : "",
      make("h3", { id: article.getAttribute("aria-labelledby") }, card.prompt || card.rows[0].sku || "A row without a sku"),
      decision(card),
      isServed && card.take ? buttons(card) : "",
      rows(card, isOpen),
      card.others.length ? make("p", { class: "others" }, `The same pattern in ${card.others.join(", ")}`) : "",
    );
    if (had) (article.querySelector(`[data-do="${had}"]`) ?? article).focus({ preventScroll: true });
  }

  function picture(id, prompt) {
    const figure = make("figure", { "data-of": id }, make("span", {}, id ? "no picture" : "not made yet"));
    const places = isServed
      ? [`/picture/${encodeURIComponent(id)}?key=${start.pictures}`]
      : [`../pictures/${encodeURIComponent(id)}.png`, `pictures/${encodeURIComponent(id)}.png`];
    if (!id) return figure;
    const image = make("img", { loading: "lazy", decoding: "async", alt: `Pattern: ${prompt}`, src: places.shift() });
    image.addEventListener("error", () => (places.length ? (image.src = places.shift()) : image.remove()));
    image.addEventListener("load", () => figure.classList.add("has"));
    figure.prepend(image);
    return figure;
  }

  function decision(card) {
    const line = make("p", { class: "decision" });
    if (card.verdict) line.append(make("b", { class: card.verdict }, words(card.verdict)));
    const take = `take ${card.take} of ${card.newest}`;
    if (card.newest > 1) line.append(make("button", { type: "button", "data-do": "takes", "aria-label": `${take}: ${card.prompt}` }, take));
    if (card.note) line.append(make("q", {}, card.note));
    if (card.person) line.append(make("small", {}, card.person));
    return line.childNodes.length ? line : "";
  }

  function buttons(card) {
    const button = (act, text, pressed) =>
      make("button", { type: "button", "data-do": act, "aria-pressed": pressed, "aria-label": `${text}: ${card.prompt}` }, text);
    const verdicts = ["pick", "reject", "again"].map((name) =>
      button(name, name[0].toUpperCase() + name.slice(1), String(card.verdict === name)));
    return make("div", { class: "buttons", role: "group", "aria-label": `Decide: ${card.prompt}` },
      ...verdicts, button("note", "Note"));
  }

  function rows(card, isOpen) {
    const lines = card.rows.map((row) => line(row, card));
    const list = make("ul", {}, ...lines.slice(0, 5));
    if (lines.length <= 5) return list;
    const more = make("summary", {}, `and ${counted(lines.length - 5, "more row")} with this pattern`);
    return make("div", {}, list, make("details", { open: isOpen }, more, make("ul", {}, ...lines.slice(5))));
  }

  function line(row, card) {
    const sku = row.sku || "without a sku";
    const box = make("input", { type: "checkbox", "data-do": `tick ${row.key}`, "aria-label": `Order ${sku}: ${card.prompt}` });
    box.checked = ticked.has(row.key);
    return make("li", {},
      isServed && row.has ? make("label", {}, box, make("b", {}, sku)) : make("b", {}, sku),
      make("span", { class: `status ${row.status}` }, words(row.status)),
      make("span", { class: "what" }, [row.category, row.selections].filter(Boolean).join(" · ")),
      row.has ? make("code", {}, row.product ? row.has : `keeps ${row.has}`) : "",
      row.message ? make("p", {}, row.message) : "");
  }

  // ---- What is taken in

  const rowsOf = (card) => card.rows.map((row) => `${row.sku} ${row.category} ${row.selections}`).join(" ");

  function accept(changed, newOrder) {
    for (const card of changed) {
      card.text = `${card.prompt} ${rowsOf(card)}`.toLowerCase();
      cards.set(card.id, card);
      if (articles.has(card.id)) fill(articles.get(card.id), card);
    }
    if (newOrder) {
      order = newOrder;
      const known = new Set(order);
      for (const id of [...cards.keys()].filter((id) => !known.has(id))) cards.delete(id);
      choices("category", "All categories", [...new Set(order.flatMap((id) => cards.get(id).rows.map((row) => row.category)))]);
    }
    if (changed.length || newOrder) choose(true);
  }

  const isMeant = (row) => (!filter.status || row.status === filter.status)
    && (!filter.category || row.category === filter.category);

  function fits(card) {
    return filter.search.split(/\s+/).every((word) => card.text.includes(word))
      && (!filter.verdict || card.verdict === (filter.verdict === "none" ? "" : filter.verdict))
      && card.rows.some(isMeant);
  }

  // What was shown stays while others come, so that nothing moves away from under a decision.
  function choose(stays = false) {
    const before = new Set(stays ? shown : []);
    shown = order.filter((id) => before.has(id) || fits(cards.get(id)));
    if (!stays) (limit = STEP), (current = "");
    if (!cards.has(current)) current = "";
    render();
  }

  function choices(name, all, texts) {
    const before = filter[name];
    byId(name).replaceChildren(make("option", { value: "" }, all), ...texts.filter(Boolean).sort().map((text) => make("option", { value: text }, words(text))));
    byId(name).value = before;
  }

  function head() {
    const total = Object.values(state.counts).reduce((sum, count) => sum + count, 0);
    const patterns = start.patterns ?? order.filter((id) => cards.get(id).take).length;
    const first = start.patterns > order.length ? `, of which these are the first ${order.length.toLocaleString("en")}` : "";
    byId("about").textContent = `${start.environment ? `${start.environment} · ` : ""}${counted(total, "row")}, ${counted(patterns, "pattern")}${first}`;
    byId("counts").replaceChildren(...Object.entries(state.counts).map(([status, count]) => make("button",
      { type: "button", "data-status": status, class: status, "aria-pressed": String(filter.status === status) },
      make("b", {}, count.toLocaleString("en")), ` ${words(status)}`)));
    const of = state.run && Object.entries(state.run.made).map(([stage, count]) => counted(count, stage)).join(" and ");
    const run = state.run ? [`A run goes on${of ? `: ${of} so far` : ""}.`]
      : state.dead ? ["The last run died. The same command again goes on, and buys nothing twice."] : [];
    const kept = state.kept === false ? ["This browser keeps nothing, so this page cannot be loaded again."] : [];
    const news = [...kept, ...(state.paused ?? []).map((brake) => `Paused: ${brake.words}.`), ...run];
    tell("news", news.join(" "));
    if (isServed) deeds();
  }

  function tell(id, text) {
    const element = byId(id);
    if (element.textContent !== text) element.replaceChildren(...linked(text));
    if (id !== "said") element.hidden = !text;
  }

  function deeds() {
    const own = `${start.environment}/${start.catalog}`;
    const isPaused = state.paused.some((brake) => brake.scope === own);
    const wanted = [
      ["order", `Order ${counted(ticked.size, "product")}`, !ticked.size],
      ["remake", `Remake ${counted(state.marked, "pattern")}`, !state.marked],
      isPaused ? ["unpause", "Unpause", false] : ["pause", "Pause", false],
      ["tick", "Tick what is shown", false], ["undo", "Undo", !undo.length], ["keys", "Keys", false],
    ];
    const before = byId("deeds").querySelector(":focus")?.dataset.deed;
    byId("deeds").replaceChildren(...wanted.map(([name, text, disabled]) =>
      make("button", { type: "button", "data-deed": name, disabled }, text)));
    if (before) byId("deeds").querySelector(`[data-deed="${before}"]`)?.focus();
  }

  // ---- What is asked of the server

  async function ask(path, body) {
    const headers = { "X-Patternmill-Session": start.session };
    const how = body ? { method: "POST", body: JSON.stringify(body), headers: { ...headers, "Content-Type": "application/json" } } : { headers };
    try {
      return await (await fetch(path, { cache: "no-store", ...how })).json();
    } catch {
      return { error: "The page does not reach `patternmill look`. Is it still running?", isLost: true };
    }
  }

  let asking = null;
  async function look() {
    clearTimeout(timer);
    asking ??= ask(`/data?since=${version}`);
    const answer = await asking;
    if (asking === null) return; // another look has taken it in
    asking = null;
    clearTimeout(timer);
    timer = setTimeout(look, document.hidden ? 10000 : 1000 * (answer.pause ?? 2));
    if (answer.error) return tell("news", answer.error);
    ({ version } = answer);
    state = answer;
    accept(answer.cards, answer.order);
    head();
    jobs(answer.jobs);
  }

  function jobs(all) {
    tell("job", all.map((now) => (now.over ? now.lines.join("\n") : `${now.question} Under way …`)).join("\n"));
    const now = all.find(({ number }) => number === following);
    if (now) lines(now.over ? now.lines : [now.question, "Under way …", byId("news").textContent]);
  }

  function say(text) {
    byId("said").textContent = text;
    clearTimeout(saying);
    saying = setTimeout(() => (byId("said").textContent = ""), 8000);
  }

  // One after the other, so that what was pressed last is saved last. `undone`: the decision that comes back, if one does.
  let saving = Promise.resolve();
  async function decide(card, verdict, note = card.note, undone = null) {
    const before = { id: card.id, take: card.take, verdict: card.verdict, note: card.note };
    const said = { pattern: card.pattern, take: undone?.take ?? card.take, verdict, note };
    if (!undone) undo.push(before);
    accept([{ ...card, verdict, note }]);
    const answer = await (saving = saving.then(() => ask("/decide", said)));
    if (answer.error) {
      if (undo.includes(before)) undo.splice(undo.indexOf(before), 1);
      if (cards.has(card.id)) accept([{ ...cards.get(card.id), verdict: before.verdict, note: before.note }]);
      say(answer.error);
    } else say(`Saved: ${note === before.note ? words(verdict) || "no verdict" : "note"}, ${card.prompt}`);
    await look();
  }

  // ---- The one dialog

  let following = 0, close = null;

  const linked = (text) => text.split(/(https?:\/\/\S+)/).map((part, at) =>
    at % 2 ? make("a", { href: part, target: "_blank", rel: "noopener noreferrer" }, part) : part);

  function lines(texts) {
    const nodes = texts.filter(Boolean).map((text) => (typeof text === "string" ? make("p", {}, ...linked(text)) : text));
    byId("lines").replaceChildren(...nodes);
  }

  // Resolves with what was filled in, or with null where it was left. It stays open until `done`.
  function form(title, texts, fields, button, problem = "") {
    byId("heading").textContent = title;
    byId("problem").textContent = problem;
    lines(texts);
    byId("fields").replaceChildren(...fields.map(({ label, name, ...about }) => make("label", {}, label,
      make(about.type === "text" ? "textarea" : "input", { ...about, name, rows: about.type === "text" ? 3 : undefined }, about.type === "text" ? about.value : ""))));
    byId("go").textContent = button;
    byId("go").hidden = !button;
    byId("leave").textContent = button ? "Cancel" : "Close";
    if (!byId("dialog").open) byId("dialog").showModal();
    (byId("fields").querySelector("input, textarea") ?? byId("heading")).focus();
    return new Promise((resolve) => (close = resolve));
  }

  function done() {
    following = 0;
    if (byId("dialog").open) byId("dialog").close();
    byId("cards").querySelector(`[data-card="${CSS.escape(current)}"]`)?.focus({ preventScroll: true });
  }

  async function carryOut(kind, title, fields = [], given = {}) {
    let filled = {}, plan = {};
    do {
      if (fields.length) filled = await form(title, [], fields.map((one) => ({ ...one, value: filled[one.name] ?? one.value })), "Show the plan", plan.error);
      if (!filled) return done();
      form(title, ["Planning …"], [], "");
      plan = await ask("/plan", { kind, ...given, ...asked(filled) });
    } while (plan.error && fields.length && byId("dialog").open);
    if (!byId("dialog").open) return;
    if (plan.error) return void (await form(title, [plan.error], [], ""), done());
    const agreed = await form(title, [...plan.lines, make("p", { class: "question" }, plan.question)], [], "Yes");
    if (!agreed) return done();
    const begun = await ask("/begin", { plan: plan.plan });
    following = plan.plan;
    const end = form(title, [begun.error ?? "Under way …"], [], "");
    await look();
    await end;
    done();
  }

  function asked(filled) {
    const quantities = Object.entries(filled).filter(([name]) => name.startsWith("quantity "));
    const others = Object.entries(filled).filter(([name]) => !name.startsWith("quantity "));
    return { ...Object.fromEntries(others), quantities: Object.fromEntries(quantities.map(([name, count]) => [name.slice(9), Number(count)])) };
  }

  async function takes(card) {
    const found = await ask(`/takes?card=${encodeURIComponent(card.id)}`);
    if (found.error) return say(found.error);
    const figures = found.map((take) => make("li", {}, picture(take.pattern_id, `${card.prompt}, take ${take.number}`),
      make("p", {}, `Take ${take.number} · ${words(take.state) || "not made"}`),
      take.number === card.take ? make("p", {}, make("b", {}, "in use"))
        : make("button", { name: "take", value: take.number, "aria-label": `Use this one: take ${take.number}` }, "Use this one")));
    const chosen = await form(`Takes: ${card.prompt}`, [make("ul", { class: "takes" }, ...figures)], [], "");
    if (!chosen?.take) return done();
    await carryOut("remake", `Use take ${chosen.take}: ${card.prompt}`, [], { sku: card.rows.map((row) => row.sku), take: Number(chosen.take) });
  }

  const ACTS = {
    pick: (card) => decide(card, card.verdict === "pick" ? "" : "pick"),
    reject: (card) => decide(card, card.verdict === "reject" ? "" : "reject"),
    again: (card) => decide(card, card.verdict === "again" ? "" : "again"),
    takes,
    note: async (card) => {
      const filled = await form(`Note: ${card.prompt}`, [], [{ label: "Note", name: "note", type: "text", value: card.note }], "Save");
      done();
      if (filled) await decide(cards.get(card.id), card.verdict, filled.note);
    },
  };

  const DEEDS = {
    order: () => carryOut("order", "Order", [
      { label: "Name of the order", name: "name", type: "search", value: `${start.catalog} ${new Date().toISOString().slice(0, 10)}`, required: true },
      ...[...ticked.values()].map((sku) => ({ label: `Quantity of ${sku}`, name: `quantity ${sku}`, type: "number", min: 1, value: 1, required: true })),
    ]),
    remake: () => carryOut("remake", "Remake what is marked again"),
    pause: () => carryOut("pause", "Pause", [{ label: "Reason", name: "reason", type: "search", value: "", required: true }]),
    unpause: () => carryOut("unpause", "Unpause"),
    tick: () => tick(shown.flatMap((id) => cards.get(id).rows).filter(isMeant)),
    undo: async () => {
      const last = undo.pop();
      if (last && cards.has(last.id)) await decide(cards.get(last.id), last.verdict, last.note, last);
    },
    keys: async () => {
      const list = make("dl", {}, ...KEYS.flatMap(([key, text]) => [make("dt", {}, key), make("dd", {}, text)]));
      await form("Keys", [list], [], "");
      done();
    },
  };

  function tick(those) {
    const able = those.filter((row) => row.has);
    const isAll = able.every((row) => ticked.has(row.key));
    able.forEach((row) => (isAll ? ticked.delete(row.key) : ticked.set(row.key, row.sku)));
    document.querySelectorAll("input[data-do]").forEach((box) => (box.checked = ticked.has(box.dataset.do.slice(5))));
    head();
  }

  // ---- Keys and clicks

  const KEYS = [["J, →", "the next pattern"], ["K, ←", "the one before"], ["↓, ↑", "the row of patterns below, above"], ["P", "pick"], ["X", "reject"],
    ["A", "again"], ["N", "note"], ["T", "takes"], ["Z", "undo"], ["Space", "tick its products"], ["O", "order what is ticked"], ["R", "remake what is marked"], ["/", "search"], ["?", "this list"]];
  const OF_PAGE = { o: "order", r: "remake", z: "undo", "?": "keys" };
  const OF_CARD = { p: "pick", x: "reject", a: "again", n: "note", t: "takes" };

  function move(by) {
    const at = shown.indexOf(current);
    const next = Math.max(0, Math.min(shown.length - 1, at < 0 ? 0 : at + by));
    if (!shown.length) return;
    if (next >= limit) limit = next + STEP;
    current = shown[next];
    render();
    articles.get(current).focus();
  }

  function pressed(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.ctrlKey || event.metaKey || event.altKey || byId("dialog").open) return false;
    if (event.target.matches("input:not([type=checkbox]), textarea, select")) return key === "Escape" && (event.target.blur(), true);
    const columns = getComputedStyle(byId("cards")).gridTemplateColumns.split(" ").length;
    const by = { j: 1, ArrowRight: 1, k: -1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[key];
    if (by) return move(by), true;
    if (key === "/") return byId("search").focus(), true;
    if (!isServed) return false;
    if (key in OF_PAGE) return byId("deeds").querySelector(`[data-deed="${OF_PAGE[key]}"]`)?.click(), true;
    const card = cards.get(current);
    if (key === " " && card && event.target.matches("article")) return tick(card.rows), true;
    if (!card?.take || !(key in OF_CARD)) return false;
    return ACTS[OF_CARD[key]](card), true;
  }

  document.addEventListener("keydown", (event) => pressed(event) && event.preventDefault());
  byId("cards").addEventListener("focusin", (event) => {
    const article = event.target.closest("article");
    if (!article || article.dataset.card === current) return;
    current = article.dataset.card;
    for (const [id, other] of articles) other.tabIndex = id === current ? 0 : -1;
  });
  byId("cards").addEventListener("click", (event) => {
    const [act, ...key] = (event.target.closest("[data-do]")?.dataset.do ?? "").split(" ");
    const card = cards.get(event.target.closest("article")?.dataset.card);
    if (act === "tick") tick(card.rows.filter((row) => row.key === key.join(" ")));
    else if (act) ACTS[act](card);
  });
  byId("deeds").addEventListener("click", (event) => DEEDS[event.target.dataset.deed]?.());
  byId("counts").addEventListener("click", (event) => {
    const status = event.target.closest("button")?.dataset.status;
    if (!status) return;
    filter.status = filter.status === status ? "" : status;
    head();
    byId("counts").querySelector(`[data-status="${status}"]`).focus();
    choose();
  });
  byId("search").addEventListener("input", (event) => ((filter.search = event.target.value.trim().toLowerCase()), choose()));
  for (const name of ["verdict", "category"]) byId(name).addEventListener("change", (event) => ((filter[name] = event.target.value), choose()));
  byId("form").addEventListener("submit", (event) => {
    event.preventDefault();
    close?.(Object.fromEntries(new FormData(byId("form"), event.submitter)));
  });
  byId("leave").addEventListener("click", () => close?.(null));
  byId("dialog").addEventListener("cancel", (event) => (event.preventDefault(), close?.(null)));
  new IntersectionObserver((seen) => {
    if (seen.some((one) => one.isIntersecting) && limit < shown.length) (limit += STEP), render();
  }, { rootMargin: "1500px" }).observe(byId("end"));
  addEventListener("beforeprint", () => ((limit = Infinity), render()));
  document.addEventListener("visibilitychange", () => document.hidden || !isServed || look());

  byId("catalog").textContent = start.catalog;
  document.title = `${start.catalog}: patterns`;
  if (isServed) {
    history.replaceState(null, "", "/");
    choices("verdict", "All verdicts", ["pick", "reject", "again", "none"]);
    look();
  } else {
    document.documentElement.classList.add("gallery");
    state.counts = {};
    for (const { status } of start.cards.flatMap((card) => card.rows)) state.counts[status] = (state.counts[status] ?? 0) + 1;
    accept(start.cards, start.cards.map((card) => card.id));
    head();
  }
})();

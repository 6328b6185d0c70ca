"use strict";
// The page of an agent: reads its API, and again the tables that the stream of revisions names.
// Every text goes into the document as text (textContent): markup in it stays what it is.
(() => {
  const LIMIT = 500, CHANGES_LIMIT = 200, DRAWN = 100;
  const $ = (selector, within = document) => within.querySelector(selector);
  // Milliseconds after a change elsewhere until what has no revision is read again: the process with the numbers and ages
  // of sessions, and the whole head, which costs the agent as much as two changes.
  const PROCESS_PERIOD = 30000, HEAD_PERIOD = 120000;
  // The revisions of the stream with which a view is read again; "state" is that of the head.
  const READ_WITH = {
    sessions: ["state", "routes"], routes: ["routes"], explain: ["state", "routes", "history"],
    changes: ["history"], health: ["health"],
  };
  // A reading of these views costs an agent as much as several changes: where changes go on, five are read
  // as they come, and then one in so many ms.
  const VIEW_PERIODS = { routes: 20000, explain: 60000 }, VIEW_BURST = 5;
  const ALL = { head: true, process: true, view: true };
  const state = { view: "sessions", sessions: [], nodes: new Set(), newest: new Map(), revisions: {}, ready: false,
    next: {}, errors: { head: [], process: [], view: [] } };
  const NONE = "\u2013";

  async function read(path, query = {}) {
    const given = Object.entries(query).filter(([, value]) => value);
    const response = await fetch(`${path}?${new URLSearchParams(given)}`, { headers: { Accept: "application/json" } });
    if (response.status === 401) { location.reload(); }
    let answer;
    try { answer = await response.json(); } catch { throw new Error(`${path}: status ${response.status}`); }
    if (response.status >= 400) { throw new Error(answer.errors?.[0]?.message ?? `status ${response.status}`); }
    for (const item of answer.items) { if (item.node) { state.nodes.add(item.node); } }
    return answer;
  }

  // Text

  const objectName = (ref) => ref ? [ref.kind, ref.namespace, ref.name].filter(Boolean).join("/") : "";
  const count = (families) => families ? families.reduce((sum, of) => sum + of.routes, 0) : null;
  function duration(seconds) {
    const whole = Math.max(0, Math.floor(seconds));
    const parts = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
    const at = parts.findIndex(([, size]) => whole >= size);
    if (at < 0) { return "0s"; }
    const [unit, size] = parts[at], next = parts[at + 1];
    const rest = next ? Math.floor((whole % size) / next[1]) : 0;
    return `${Math.floor(whole / size)}${unit}${rest ? rest + next[0] : ""}`;
  }
  const age = (time) => time ? duration((Date.now() - Date.parse(time)) / 1000) : null;
  function clock(time) {
    const at = new Date(time), today = new Date().toDateString() === at.toDateString();
    const text = at.toLocaleTimeString("en-GB") + "." + String(at.getMilliseconds()).padStart(3, "0");
    return today ? text : `${at.toLocaleDateString("en-CA")} ${text}`;
  }
  const octets = (size) => size >= 1e9 ? `${(size / 1e9).toFixed(1)} GB` : `${Math.round(size / 1e6)} MB`;

  // Elements

  function element(name, text, ...classes) {
    const made = document.createElement(name);
    made.className = classes.filter(Boolean).join(" ");
    if (text !== undefined && text !== null) { made.textContent = text; }
    return made;
  }
  const link = (text, view, query) => {
    const made = element("a", text);
    made.href = `#${view}=${encodeURIComponent(query)}`;
    return made;
  };

  // A column: title, cell of an item (a text, an element, or nothing), class.
  function table(target, columns, items, none) {
    const shown = columns.filter((column) => column.title !== "Node" || state.nodes.size > 1);
    const head = element("thead"), row = head.appendChild(element("tr")), body = element("tbody");
    for (const column of shown) {
      const cell = row.appendChild(element("th", column.title, column.of === "number" && "number"));
      cell.scope = "col";
    }
    for (const item of items) {
      const line = body.appendChild(element("tr", null, item.sequence > state.newest.get(item.node) && "new"));
      for (const column of shown) {
        const value = column.cell(item);
        const cell = line.appendChild(element("td", null, column.of, column.look?.(item)));
        cell.append(value === null || value === undefined || value === "" ? NONE : value);
      }
    }
    if (!items.length) {
      const cell = body.appendChild(element("tr")).appendChild(element("td", none, "empty"));
      cell.colSpan = shown.length;
    }
    target.replaceChildren(head, body);
  }
  const column = (title, cell, of = "", look = undefined) => ({ title, cell, of, look });
  // A long name is broken, so that what stands behind it is in sight.
  const long = (text) => text?.length > 40 && "long";
  const node = column("Node", (item) => item.node);
  const matches = (item, text) => !text || JSON.stringify(item).toLowerCase().includes(text.toLowerCase());

  // Views

  const place = (name) => {
    const section = $(`#view-${name}`);
    return { section, form: $("form", section), output: $("output", section), table: $("table", section),
      text: $("[name=text]", section).value.trim() };
  };
  const many = (number, of) => `${number} ${of}${number === 1 ? "" : "s"}`;
  // Of several nodes each has its part of the rows.
  const share = () => Math.ceil(LIMIT / Math.max(1, state.nodes.size));
  const first = (limit) => `the first ${limit}${state.nodes.size > 1 ? " of each node" : ""}`;

  const SESSIONS = [
    node,
    column("Peer", (of) => link(of.name, "changes", of.name), "", (of) => long(of.name)),
    column("Address", (of) => of.address ?? of.interface, "code"),
    column("AS", (of) => of.peerASN ?? of.peerType, "number"),
    column("State", (of) => of.state, "", (of) => of.state === "Established" ? "good" : "bad"),
    column("Since", (of) => age(of.sinceTime), "number"),
    column("BFD", (of) => of.bfd),
    column("Received", (of) => count(of.received), "number"),
    column("Advertised", (of) => count(of.advertised), "number"),
    column("Updates in", (of) => of.updatesReceived, "number"),
    column("out", (of) => of.updatesSent, "number"),
    column("Flaps", (of) => of.flaps || null, "number"),
    column("Reason", (of) => of.state === "Established" ? of.malformed : of.reason || of.likelyCause, "wide"),
  ];

  const ROUTES = [
    node,
    column("Prefix", (of) => link(of.prefix, "explain", of.prefix), "code"),
    column("Peer", (of) => of.peer, "", (of) => long(of.peer)),
    column("Next hop", (of) => of.nextHop, "code"),
    column("AS path", (of) => of.asPath, "code"),
    column("Communities", (of) => [...of.communities ?? [], ...of.largeCommunities ?? []].join(" "), "code wide"),
    column("MED", (of) => of.med, "number"),
    column("Local pref", (of) => of.localPreference, "number"),
    column("Status", (of) => of.status, "wide", (of) => of.best === false && "quiet"),
    column("Object", (of) => (of.origins ?? []).map(objectName).join(" ") || objectName(of.object), "wide"),
    column("Since", (of) => age(of.sinceTime), "number"),
  ];

  const EXPLAINED = [
    node,
    column("Object", (of) => objectName(of.object), "", (of) => long(objectName(of.object))),
    column("Prefix", (of) => of.prefix, "code"),
    column("Peer", (of) => of.peer ?? "all peers", "", (of) => long(of.peer)),
    column("Result", (of) => of.reason, "", (of) => of.advertised ? "good" : "bad"),
    column("Rule", (of) => objectName(of.rule), "", (of) => long(objectName(of.rule))),
    column("Why", (of) => of.message, "wide"),
  ];

  const changeText = (of) => [
    ...(of.type === "DELETED" ? [] : of.changes ?? []).map((field) =>
      field.old === undefined ? `${field.field}: ${field.new ?? ""}` : `${field.field}: ${field.old} \u2192 ${field.new ?? "none"}`),
    of.message, of.count > 1 && `${of.count} times`].filter(Boolean).join("; ");
  const CHANGES = [
    column("Time", (of) => clock(of.eventTime), "code"),
    node,
    column("Type", (of) => of.type.toLowerCase(), "", (of) => ({ ADDED: "good", DELETED: "bad" })[of.type]),
    column("Object", (of) => of.name ? link(`${of.kind}/${of.name}`, "changes", `${of.kind}/${of.name}`) : of.kind, "",
      (of) => long(`${of.kind}/${of.name}`)),
    column("Change", changeText, "wide"),
    column("Cause", (of) => {
      const all = element("span");
      (of.causes ?? []).forEach((cause, at) => all.append(at ? " " : "", link(cause, "changes", cause)));
      return all.childNodes.length ? all : null;
    }, "wide"),
  ];

  const RECONCILERS = [
    node,
    column("Reconciler", (of) => of.name),
    column("Target", (of) => of.target),
    column("Objects", (of) => of.objects, "number"),
    column("Errors", (of) => of.errors, "number", (of) => of.errors > 0 && "bad"),
    column("Waiting", (of) => of.waiting, "number"),
    column("Drifted", (of) => of.drifted, "number", (of) => of.drifted > 0 && "bad"),
    column("Last run", (of) => of.lastRunTime && `${age(of.lastRunTime)} ago`, "number"),
    column("Took", (of) => of.durationSeconds !== undefined ? `${(of.durationSeconds * 1000).toFixed(1)} ms` : null, "number"),
    column("What it does", (of) => of.summary, "wide"),
  ];
  const CELLS = [
    node,
    column("Cell", (of) => of.path.join("/")),
    column("State", (of) => of.level, "", (of) => ({ ok: "good", degraded: "bad" })[of.level]),
    column("Since", (of) => age(of.time), "number"),
    column("Message", (of) => of.message, "wide"),
  ];

  const views = {
    async sessions(parts) {
      const { output, table: target, text } = place("sessions");
      // The head has read the sessions; without it only numbers of theirs have changed.
      const answer = parts.head ? null : await counts();
      const sessions = state.sessions, up = sessions.filter((of) => of.state === "Established").length;
      const worst = (of) => [of.state === "Established" ? 1 : 0, of.node, of.instance, of.name].join("\u0000");
      const items = sessions.filter((of) => matches(of, text)).sort((a, b) => worst(a) < worst(b) ? -1 : 1);
      table(target, SESSIONS, items, text ? "No session matches." : "No peers are configured.");
      output.textContent = `${up} of ${sessions.length} Established`;
      return answer;
    },
    async routes() {
      const { form, output, table: target, text } = place("routes");
      const isPrefix = /^[0-9a-f.:]+(\/\d+)?$/i.test(text) && /[.:]/.test(text);
      const limit = share(), of = form.elements.table.value;
      const answer = await read("/v1/routes", { table: of, limit, prefix: isPrefix ? text : "" });
      const items = answer.items.filter((of) => isPrefix || matches(of, text));
      table(target, ROUTES, items, "No route matches.");
      const cut = text && !isPrefix ? ` among ${first(limit)}` : ` (${first(limit)})`;
      output.textContent = many(items.length, "route") + (answer.truncated ? cut : "");
      return answer;
    },
    async explain() {
      const { section, output, table: target, text } = place("explain");
      if (!text) {
        table(target, EXPLAINED, [], "Why a prefix is advertised to a peer, or is not: enter a prefix, an address, or NAMESPACE/NAME of a Service.");
        $("figure", section).replaceChildren();
        output.textContent = "";
        return null;
      }
      const answer = await read("/v1/explain", { target: text });
      graph($("figure", section), answer.items.slice(0, DRAWN));
      table(target, EXPLAINED, answer.items.slice(0, LIMIT), "Nothing is known of it.");
      const advertised = answer.items.filter((of) => of.advertised).length;
      const cut = answer.items.length > DRAWN ? `; the first ${DRAWN} are drawn` : "";
      output.textContent = `advertised in ${advertised} of ${many(answer.items.length, "case")}${cut}`;
      return answer;
    },
    async changes() {
      const { output, table: target, text } = place("changes");
      const answer = await read("/v1/history", { about: text, limit: CHANGES_LIMIT });
      const all = answer.items.sort((a, b) => a.eventTime < b.eventTime ? 1 : a.eventTime > b.eventTime ? -1 : b.sequence - a.sequence);
      const items = all.slice(0, CHANGES_LIMIT), cut = answer.truncated || items.length < all.length;
      table(target, CHANGES, items, "No change since the agent has started.");
      for (const { node, sequence } of all) { state.newest.set(node, Math.max(sequence, state.newest.get(node) ?? 0)); }
      output.textContent = many(items.length, "change") + (cut ? " (the newest)" : "");
      return answer;
    },
    async health() {
      const { output, text } = place("health");
      const [cells, reconcilers] = [await read("/v1/health"), await read("/v1/reconcilers")];
      const items = cells.items.filter((of) => matches(of, text));
      const order = { degraded: 0, ok: 1, stopped: 2 };
      table($("#cells"), CELLS, items.sort((a, b) => order[a.level] - order[b.level]), "No cell matches.");
      table($("#reconcilers"), RECONCILERS, reconcilers.items.filter((of) => matches(of, text)), "No reconciler matches.");
      output.textContent = `${cells.items.filter((of) => of.level === "degraded").length} degraded`;
      return cells;
    },
  };

  // The chain of an explanation: object, rule, prefix, peers; what is advertised is drawn through.
  function graph(figure, items) {
    const titles = ["Object", "Rule", "Prefix", "Peer"];
    const columns = titles.map(() => new Map());
    const edges = new Map();
    for (const of of items) {
      const chain = [objectName(of.object), objectName(of.rule), of.prefix, of.peer ?? "all peers"];
      const nodes = chain.map((text, at) => text && [at, (at === 3 && state.nodes.size > 1 ? `${of.node}: ` : "") + text]).filter(Boolean);
      for (const [at, text] of nodes) { columns[at].set(text, columns[at].get(text) || of.advertised); }
      for (let at = 1; at < nodes.length; at++) {
        const [a, b] = [nodes[at - 1], nodes[at]], key = JSON.stringify([a, b]);
        edges.set(key, { a, b, yes: edges.get(key)?.yes || of.advertised });
      }
    }
    const used = columns.map((nodes, at) => [at, [...nodes]]).filter(([, nodes]) => nodes.length);
    if (!used.length) { figure.replaceChildren(); return; }
    const SPACE = "http://www.w3.org/2000/svg", HEIGHT = 26, GAP = 64, PAD = 16, TOP = 30;
    const make = (name, attributes, ...inner) => {
      const made = document.createElementNS(SPACE, name);
      for (const [key, value] of Object.entries(attributes)) { made.setAttribute(key, value); }
      made.append(...inner);
      return made;
    };
    // Names often differ at their ends.
    const short = (text) => text.length > 44 ? `${text.slice(0, 21)}\u2026${text.slice(-22)}` : text;
    const tallest = Math.max(...used.map(([, nodes]) => nodes.length)), places = new Map();
    let x = PAD;
    const boxes = [], heads = [];
    for (const [at, nodes] of used) {
      const width = Math.max(...nodes.map(([text]) => short(text).length), 8) * 7.3 + 20;
      // In the middle, and in sight where another column is higher than a screen.
      const top = TOP + Math.min((tallest - nodes.length) / 2, 5) * (HEIGHT + 8);
      heads.push(make("text", { class: "head", x, y: 18 }, titles[at]));
      nodes.forEach(([text, yes], number) => {
        const y = top + number * (HEIGHT + 8);
        places.set(JSON.stringify([at, text]), { x, y, width });
        boxes.push(make("g", { class: yes ? "node yes" : "node" },
          make("title", {}, text), make("rect", { x, y, width, height: HEIGHT, rx: 4 }),
          make("text", { x: x + 10, y: y + 17 }, short(text))));
      });
      x += width + GAP;
    }
    const lines = [...edges.values()].sort((a, b) => Number(a.yes) - Number(b.yes)).map(({ a, b, yes }) => {
      const from = places.get(JSON.stringify(a)), to = places.get(JSON.stringify(b));
      const [x1, y1, x2, y2] = [from.x + from.width, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
      return make("path", { class: yes ? "yes" : "no", d: `M${x1} ${y1}C${x1 + GAP / 2} ${y1} ${x2 - GAP / 2} ${y2} ${x2} ${y2}` });
    });
    const height = TOP + tallest * (HEIGHT + 8) + 6;
    figure.replaceChildren(make("svg", { width: x - GAP + PAD, height, role: "img" }, ...lines, ...heads, ...boxes));
  }

  // The head of the page

  async function overview() {
    const answer = await read("/v1/status"), items = answer.items, summary = $("#summary");
    const peers = items.flatMap((of) => of.peers ?? []), up = peers.filter((of) => of.state === "Established").length;
    state.sessions = peers; // the view of sessions needs no other reading
    const parts = [];
    const part = (text, look) => parts.push(element("span", text, look));
    const waiting = items.filter((of) => !of.ready), degraded = items.filter((of) => of.health !== "ok");
    if (items.length > 1) { part(many(items.length, "node")); }
    state.ready = !waiting.length;
    part(waiting.length ? (items.length > 1 ? `${waiting.length} not ready` : "not ready") : "ready", waiting.length ? "bad" : "good");
    part(degraded.length ? (items.length > 1 ? `${degraded.length} degraded` : "degraded") : "healthy", degraded.length ? "bad" : "good");
    part(`${up} of ${many(peers.length, "session")} Established`, up < peers.length ? "bad" : "");
    const problems = items.flatMap((of) => of.problems ?? []).length;
    if (problems) { part(many(problems, "problem"), "bad"); }
    summary.replaceChildren(...parts);
    $("#node").textContent = items.length === 1 ? items[0].node : "Waggle";
    document.title = `${items.length === 1 ? items[0].node : "cluster"} \u2013 Waggle`;
    return answer;
  }

  async function process() {
    const answer = await read("/v1/process"), own = answer.items;
    $("#process").textContent = own.length === 1
      ? `${own[0].version}, up ${age(own[0].startTime)}, ${octets(own[0].residentOctets)}, ${own[0].cpuSeconds.toFixed(1)} s of CPU` : "";
    return answer;
  }

  // The numbers of the sessions that the head has read; routes are a sum of all families here.
  async function counts() {
    const answer = await read("/v1/peer-counts"), key = (of) => JSON.stringify([of.node, of.instance, of.name]);
    const bySession = new Map(answer.items.map((of) => [key(of), of]));
    const families = (routes) => routes === undefined ? undefined : [{ routes }];
    for (const session of state.sessions) {
      const of = bySession.get(key(session));
      if (!of) { continue; }
      const { updatesReceived, updatesSent, routesReceived, routesAdvertised } = of;
      Object.assign(session, {
        updatesReceived, updatesSent, received: families(routesReceived), advertised: families(routesAdvertised),
      });
    }
    return answer;
  }

  function report(errors) {
    $("#errors").replaceChildren(...errors.map((text) => element("p", text)));
  }

  let running = null;
  let due = {};
  // One reading at a time; what changes meanwhile is read by the next one.
  function refresh(parts = ALL) {
    for (const part of Object.keys(ALL)) { due[part] ||= parts[part]; }
    document.body.ariaBusy = "true";
    running ??= readings().finally(() => { running = null; document.body.ariaBusy = "false"; });
    return running;
  }

  async function readings() {
    while (Object.values(due).some(Boolean)) {
      const parts = due;
      due = {};
      parts.process ||= parts.head;
      parts.view ||= parts.head && state.view === "sessions"; // which is made of the head
      for (const [part, reading] of [["head", overview], ["process", process], ["view", views[state.view]]]) {
        if (!parts[part]) { continue; }
        try {
          const answer = await reading(parts);
          state.errors[part] = (answer?.errors ?? []).map((error) => [error.node, error.message].filter(Boolean).join(": "));
        } catch (error) {
          state.errors[part] = [error.message];
          if (part === "head") { state.ready = false; } // the next event has it read again
        }
      }
      report([...new Set(Object.values(state.errors).flat())].slice(0, 8));
      document.body.dataset.read = String(Number(document.body.dataset.read ?? 0) + 1);
    }
  }

  // The parts that an event of the stream makes old: a stream without revisions, as of a cluster, all of them.
  function outdated(revisions) {
    const before = state.revisions;
    state.revisions = revisions;
    const differs = (name) => before[name] === undefined || before[name] !== revisions[name];
    return { head: !state.ready || differs("state"), view: READ_WITH[state.view].some(differs) };
  }

  const timers = {};
  function later(name, parts, period) {
    timers[name] ??= setTimeout(() => { timers[name] = null; refresh(parts()); }, period);
  }

  // How many ms a view has to wait until changes have it read again.
  function pause(view) {
    const period = VIEW_PERIODS[view] ?? 0, now = Date.now();
    const next = Math.max(state.next[view] ?? 0, now - (VIEW_BURST - 1) * period);
    if (next > now) { return next - now; }
    state.next[view] = next + period;
    return 0;
  }

  function changed(revisions) {
    const parts = outdated(revisions);
    if (document.hidden) { state.stale = true; return; }
    const wait = parts.view && !parts.head ? pause(state.view) : 0;
    if (wait) {
      parts.view = false;
      later("view", () => ({ view: !pause(state.view) }), wait);
    }
    if (parts.head || parts.view) { refresh(parts); }
    if (parts.head) { return; }
    later("process", () => ({ process: true, view: state.view === "sessions" }), PROCESS_PERIOD);
    later("head", () => ({ head: true }), HEAD_PERIOD);
  }

  function show() {
    const [name, query] = location.hash.slice(1).split("=");
    const view = Object.hasOwn(views, name) ? name : "sessions";
    if (view !== state.view) { state.newest.clear(); }
    state.view = view;
    for (const section of document.querySelectorAll("main > section")) { section.hidden = section.id !== `view-${view}`; }
    for (const anchor of document.querySelectorAll("nav a")) {
      if (anchor.dataset.view === view) { anchor.setAttribute("aria-current", "page"); } else { anchor.removeAttribute("aria-current"); }
    }
    let text;
    try { text = query === undefined ? undefined : decodeURIComponent(query); } catch { text = query; }
    if (text !== undefined) { $("[name=text]", $(`#view-${view}`)).value = text; }
    refresh();
  }

  let typing;
  for (const form of document.querySelectorAll("form.filter")) {
    form.addEventListener("submit", (event) => { event.preventDefault(); refresh(); });
    form.addEventListener("change", () => refresh());
    form.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(refresh, 250); });
  }
  addEventListener("hashchange", show);
  addEventListener("keydown", (event) => {
    const field = event.target.closest?.("input, select");
    if (event.key === "Escape" && field) { field.blur(); return; }
    if (field || event.ctrlKey || event.metaKey || event.altKey) { return; }
    const at = Number(event.key) - 1, names = Object.keys(views);
    if (names[at]) { location.hash = names[at]; }
    else if (event.key === "/") { event.preventDefault(); $("[name=text]", $(`#view-${state.view}`)).focus(); }
    else if (event.key === "r") { refresh(); }
  });

  function follow() {
    const source = new EventSource("/v1/live");
    const connection = $("#connection");
    source.onopen = () => { connection.className = "live"; connection.textContent = "live"; };
    source.onmessage = (event) => changed(JSON.parse(event.data));
    source.onerror = () => {
      state.revisions = {}; // an agent that starts again begins anew
      connection.className = "lost";
      connection.textContent = "no connection to the agent; the page shows what was read last";
      if (source.readyState === EventSource.CLOSED) { setTimeout(follow, 3000); }
    };
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden && state.stale) { state.stale = false; refresh(); } });

  show();
  follow();
})();

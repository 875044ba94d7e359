"use strict";
(() => {
  const CHUNK = 60;
  const mode = document.body.dataset.mode;
  const overview = document.getElementById("overview");
  const page = document.getElementById("page");
  const block = document.getElementById("listing");
  const store = "omnidata:" + new URL(document.body.dataset.home, location.href).pathname;

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  /* A line may end after an underscore or a slash. */
  const breakable = (text) =>
    text.split(/(?<=[_/])/).flatMap((part, at) => at ? [make("wbr"), part] : [part]);

  /* The steps that the filters leave, for the pages of these steps. */
  let chosen = { numbers: [], hash: "", all: true };
  const remember = (value) => {
    chosen = value;
    try { sessionStorage.setItem(store, JSON.stringify(value)); } catch { /* not kept, then */ }
  };
  try { chosen = JSON.parse(sessionStorage.getItem(store)) || chosen; } catch { /* none */ }

  /* --- one step ------------------------------------------------------------------------------ */

  const broken = (element) => {
    const note = make("p", { class: "missing" }, "This file is broken and cannot be shown.");
    element.closest("figure")?.querySelector(".key")?.remove();
    (element.closest(".frame") ?? element).replaceWith(note);
  };

  const fill = (root) => {
    for (const element of root.querySelectorAll("[data-from]")) {
      const held = document.getElementById(element.dataset.from);
      if (held) element.src = held.dataset.uri;
      else broken(element);
    }
    for (const element of root.querySelectorAll("[data-text]")) {
      element.textContent = document.getElementById(element.dataset.text).content.textContent;
    }
  };

  /* A picture whose header is whole and whose rest is not has a size, and no small picture. */
  const pictures = (root) => {
    for (const picture of root.querySelectorAll(".frame img")) {
      if (picture.complete && picture.src && !picture.naturalWidth) broken(picture);
      else picture.addEventListener("error", () => broken(picture));
    }
  };

  const waves = (root) => {
    for (const wave of root.querySelectorAll(".wave")) {
      const player = wave.parentElement.querySelector("audio, video");
      const head = wave.querySelector(".playhead");
      const width = wave.viewBox.baseVal.width, seconds = Number(wave.dataset.seconds);
      if (!player || !seconds) continue;
      const move = () => {
        const x = String(Math.min(1, player.currentTime / seconds) * width);
        head.setAttribute("x1", x);
        head.setAttribute("x2", x);
      };
      for (const event of ["timeupdate", "seeked"]) player.addEventListener(event, move);
      wave.addEventListener("click", (event) => {
        const box = wave.getBoundingClientRect();
        player.currentTime = (event.clientX - box.left) / box.width * seconds;
      });
    }
  };

  const href = (number) => mode === "file" ? "#step=" + number : number + ".html";

  const enhance = (root, number) => {
    fill(root);
    pictures(root);
    waves(root);
    const place = chosen.numbers.indexOf(number);
    const home = root.querySelector(".home");
    if (home && chosen.hash) home.setAttribute("href", home.getAttribute("href") + (mode === "file" ? "" : "#") + chosen.hash);
    if (place < 0 || chosen.all) return;
    const box = root.querySelector(".chosen");
    box.textContent = `step ${place + 1} of the ${chosen.numbers.length} filtered`;
    box.hidden = false;
    /* Previous and next stay inside the filtered steps. */
    const around = root.querySelector(".around");
    const link = (to, rel, key, text) =>
      to === undefined ? [] : [make("a", { href: href(to), rel, "aria-keyshortcuts": key }, text)];
    around.replaceChildren(
      ...link(chosen.numbers[place - 1], "prev", "ArrowLeft", "‹ Previous"),
      ...link(chosen.numbers[place + 1], "next", "ArrowRight", "Next ›"),
    );
  };

  const press = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
    const focused = event.target.closest("input, select, textarea, video, audio, .scroll, pre");
    const searched = !page.hidden && event.key === "/" && !event.target.closest("input, select, textarea");
    if (searched) {
      event.preventDefault();
      const home = page.querySelector(".home").getAttribute("href");
      location.href = home + (home.includes("#") ? home.endsWith("#") ? "" : "&" : "#") + "search";
      return;
    }
    if (focused || page.hidden) return;
    const wanted = { ArrowLeft: '[rel="prev"]', ArrowRight: '[rel="next"]', Escape: ".home" }[event.key];
    const link = wanted && page.querySelector(wanted);
    if (link) { event.preventDefault(); link.click(); }
  };
  document.addEventListener("keydown", press);

  if (!block) {
    enhance(page, Number(location.pathname.match(/(\d+)\.html$/)?.[1] ?? -1));
    return;
  }

  /* --- the list ------------------------------------------------------------------------------ */

  const { patterns, run, marks, data } = JSON.parse(block.textContent);
  const [stepPattern, thumbPattern] = patterns;
  const form = document.getElementById("filters");
  const list = document.getElementById("list");
  const more = document.getElementById("more");
  const clear = document.getElementById("clear");
  const nothing = document.getElementById("nothing");
  const set = document.getElementById("set");
  const count = document.getElementById("count");
  const buttons = { steps: document.getElementById("as-steps"), episodes: document.getElementById("as-episodes") };
  const axes = new Map(data.axes.map((axis) => [axis.key, axis]));
  const verdict = axes.get("verdict"), target = axes.get("target"), answer = axes.get("answer");
  const [width, height] = data.size;  // of the first picture: most others have its shape
  let view = "steps", shown = 0, found = [], inside = new Set(), title = document.title;

  const name = (axis, number) => axis.names[axis.codes[number]];
  const mark = (number) => verdict ? verdict.values[verdict.codes[number]] : "plain";
  const address = (number) => stepPattern.replace("{}", number);

  const state = () => {
    const values = new URLSearchParams();
    for (const [key, value] of new FormData(form)) if (value) values.append(key, value);
    if (view !== "steps") values.append("view", view);
    return values;
  };

  const choose = () => {
    const tests = [];
    let filters = 0;
    for (const element of form.elements) {
      if (!element.name) continue;
      element.parentElement.classList.toggle("on", Boolean(element.value));
      if (!element.value || element.name === "q") continue;
      const axis = axes.get(element.name), code = axis.values.indexOf(element.value);
      filters += 1;
      tests.push((number) => axis.codes[number] === code);
    }
    const words = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) {
      tests.push((number) => {
        const text = (data.ids[number] + " " + data.episodes[data.episode[number]][1]).toLowerCase();
        return words.every((word) => text.includes(word));
      });
    }
    set.textContent = filters ? `(${filters} set)` : "";
    clear.hidden = !tests.length;
    found = [];
    for (let number = 0; number < data.ids.length; number++) {
      if (tests.every((test) => test(number))) found.push(number);
    }
    inside = new Set(found);
    remember({ numbers: found, hash: state().toString(), all: found.length === data.ids.length });
  };

  const does = (number) => {
    if (!target) return "";
    const wanted = name(target, number), given = answer && name(answer, number);
    return given && given !== wanted ? `target ${wanted}, answer ${given}` : wanted && `target ${wanted}`;
  };

  const card = (number) => {
    const picture = make("img", { alt: "", loading: "lazy", decoding: "async" });
    const held = mode === "file" && document.getElementById("p" + data.face[number]);
    if (held) picture.src = held.dataset.uri;
    else if (data.face[number] >= 0 && mode !== "file") picture.src = thumbPattern.replace("{}", data.face[number]);
    const link = make("a", { class: "card", href: address(number) });
    link.classList.toggle("wide", width > height);
    picture.width = width;
    picture.height = height;
    picture.addEventListener("load", () => {
      picture.width = picture.naturalWidth;
      picture.height = picture.naturalHeight;
      link.classList.toggle("wide", picture.width > picture.height);
    });
    const body = make("div", {}, make("strong", {}, make("bdi", {}, ...breakable(data.ids[number]))));
    const line = make("p", { class: "line", dir: "auto" }, data.episodes[data.episode[number]][1]);
    if (run) body.append(make("span", { class: "badge " + mark(number) }, marks[mark(number)]), " ");
    body.append(line);
    body.append(make("span", { class: "does" }, make("bdi", {}, does(number))));
    link.append(picture.getAttribute("src") ? picture : make("span", { class: "blank" }), body);
    return make("li", {}, link);
  };

  const row = (episode) => {
    const [id, instruction] = data.episodes[episode], strip = make("ol", { class: "strip" });
    let whole = run;
    for (const number of data.strips[episode]) {
      const kind = mark(number), index = data.index[number] + 1;
      const label = `${id}, step ${index}` + (run ? `: ${marks[kind]}` : "");
      const cell = make("a", { class: "cell " + kind, href: address(number), "aria-label": label, title: label }, String(index));
      if (!inside.has(number)) cell.classList.add("out");
      if (whole && kind !== "right" && kind !== "unjudged") { cell.classList.add("broke"); whole = false; }
      strip.append(make("li", {}, cell));
    }
    const head = make("div", {}, make("p", { class: "id" }, make("bdi", {}, ...breakable(id))), make("p", { dir: "auto" }, instruction));
    return make("li", { class: "row" }, head, strip);
  };

  const rows = () => view === "steps" ? found : [...new Set(found.map((number) => data.episode[number]))];

  const grow = () => {
    const all = rows(), part = all.slice(shown, shown + CHUNK);
    list.append(...part.map(view === "steps" ? card : row));
    shown += part.length;
    more.hidden = shown >= all.length;
    more.textContent = `Show more (${all.length - shown} left)`;
  };

  const counted = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

  const draw = () => {
    list.replaceChildren();
    list.classList.toggle("episodes", view === "episodes");
    for (const [key, button] of Object.entries(buttons)) button.setAttribute("aria-pressed", String(key === view));
    const episodes = new Set(found.map((number) => data.episode[number])).size;
    count.textContent = `${found.length} of ${counted(data.ids.length, "step")}`;
    if (data.episodes.length < data.ids.length) {
      count.textContent += `, in ${episodes} of ${counted(data.episodes.length, "episode")}`;
    }
    nothing.hidden = found.length > 0;
    shown = 0;
    grow();
  };

  const write = () => {
    const hash = state().toString();
    history.replaceState(null, "", hash ? "#" + hash : location.pathname + location.search);
  };

  const read = (values) => {
    for (const element of form.elements) {
      if (!element.name) continue;
      const value = values.get(element.name) ?? "";
      element.value = value;
      if (element.value !== value) element.value = "";
    }
    view = values.get("view") === "episodes" ? "episodes" : "steps";
  };

  const update = () => { choose(); write(); draw(); };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => {
    const before = list.children.length;
    grow();
    list.children[before]?.querySelector("a")?.focus();
  });
  clear.addEventListener("click", () => { form.reset(); update(); });
  for (const [key, button] of Object.entries(buttons)) button.addEventListener("click", () => { view = key; update(); });

  /* On a phone the first step is on the first screen: tables and filters wait folded. */
  if (matchMedia("(max-width: 48rem)").matches) {
    for (const fold of overview.querySelectorAll("details[open]")) fold.open = false;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
    if (overview.hidden || event.target.closest("input, select, textarea")) return;
    if (event.key === "/") {
      event.preventDefault();
      form.elements.q.focus();
      return;
    }
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!side || event.target.closest(".scroll")) return;
    const links = [...list.querySelectorAll(".card, .cell")];
    const at = links.indexOf(document.activeElement);
    const link = links[at < 0 ? (side > 0 ? 0 : -1) : at + side];
    if (link) { event.preventDefault(); link.focus(); }
  });

  /* --- where we are -------------------------------------------------------------------------- */

  let drawn = false, last = 0;
  const go = (event) => {
    const values = new URLSearchParams(location.hash.slice(1));
    const number = values.get("step");
    const held = number !== null && document.getElementById("s" + number);
    if (held) {
      if (!overview.hidden) last = scrollY;
      page.replaceChildren(held.content.cloneNode(true));
      overview.hidden = true;
      page.hidden = false;
      enhance(page, Number(number));
      document.title = data.ids[number] + " · omnidata";
      scrollTo(0, 0);
      page.querySelector("h1").focus();
      return;
    }
    const back = !page.hidden;
    page.hidden = true;
    page.replaceChildren();
    overview.hidden = false;
    document.title = title;
    if (location.hash === "#main") return;
    const search = values.has("search");
    values.delete("search");
    const before = state().toString();
    read(values);
    const same = drawn && before === state().toString();
    if (!same) { choose(); draw(); drawn = true; }
    if (search) { write(); form.elements.q.focus(); return; }
    if (back) { scrollTo(0, last); return; }
    if (event && values.size) {
      const heading = document.getElementById("h-list");
      heading.scrollIntoView();
      heading.focus({ preventScroll: true });
    }
  };
  addEventListener("hashchange", go);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => go());
  else go();
})();

// The page: views, and what leads from one to another.

import { labelColours } from "./colours.js";
import { Data } from "./data.js";
import { h, replace } from "./dom.js";
import { Examples } from "./examples.js";
import { Features } from "./features.js";
import { NONE } from "./filters.js";
import { keyHelp, listen } from "./keys.js";
import { overview } from "./overview.js";
import { visible } from "./text.js";
import { transitionsView } from "./transitions.js";

const THEMES = [
  ["auto", "◐"],
  ["light", "☀"],
  ["dark", "☾"],
];

function themes(button) {
  let k = 0;
  const show = () => {
    const [name, sign] = THEMES[k];
    document.documentElement.dataset.theme = name;
    button.textContent = sign;
    button.setAttribute("aria-label", `colours: ${name}`);
    button.title = `Colours: ${name} (t)`;
  };
  const next = () => {
    k = (k + 1) % THEMES.length;
    show();
  };
  button.addEventListener("click", next);
  show();
  return next;
}

async function start() {
  const data = await Data.open();
  const colours = (data.own.colours ?? labelColours)(data.summary.labels);
  const main = document.getElementById("main");
  document.getElementById("title").textContent = visible(data.summary.title);
  const nextTheme = themes(document.getElementById("theme"));
  const help = keyHelp();
  document.body.append(help);
  document.getElementById("help").addEventListener("click", () => help.showModal());

  let current = "overview";
  let examples = null;
  const features = new Features(data, colours);
  const ready = data.openList().then(() => {
    examples = new Examples(data, colours, (name) => {
      show("features");
      features.show(name);
    });
    examples.set({});
    performance.mark("chordal-list");
  });
  const views = {
    overview: ["Overview", () => overview(data, browse)],
    examples: ["Examples", () => examples.node],
    transitions: [data.own.tables, () => transitionsView(data)],
    features: [
      "Features",
      () => {
        if (!features.input.value) features.show();
        return features.node;
      },
    ],
  };
  const tabs = new Map(
    Object.entries(views).map(([name, [text]]) => [
      name,
      h("button", { type: "button", role: "tab", id: `tab-${name}`, on: { click: () => show(name) } }, text),
    ]),
  );
  document.getElementById("tabs").append(...tabs.values());

  async function show(name) {
    current = name;
    for (const [key, tab] of tabs) tab.setAttribute("aria-selected", String(key === name));
    if (name !== "examples") document.body.classList.remove("reading");
    if (name === "examples" && !examples) {
      replace(main, h("p", { class: "nothing" }, "Unpacking…"));
      await ready;
      if (current !== name) return;
    }
    replace(main, views[name][1]());
    if (name === "examples") examples.list.draw();
    main.scrollTop = 0;
  }

  async function browse(filters) {
    await ready;
    await show("examples");
    examples.set({ ...NONE, ...filters });
    if (examples.items.length && window.matchMedia("(min-width: 60rem)").matches) examples.list.activate(0);
  }

  const inExamples = (action) => () => {
    if (current === "examples" && examples) action();
  };
  const search = async () => {
    if (current === "features") return features.input.focus();
    await show("examples");
    return examples.focusSearch();
  };
  listen({
    1: () => show("overview"),
    2: () => show("examples"),
    3: () => show("transitions"),
    4: () => show("features"),
    "/": search,
    "?": () => help.showModal(),
    t: nextTheme,
    j: inExamples(() => examples.list.move(1)),
    k: inExamples(() => examples.list.move(-1)),
    ArrowDown: inExamples(() => examples.list.move(1)),
    ArrowUp: inExamples(() => examples.list.move(-1)),
    ArrowRight: inExamples(() => examples.detail.step(1)),
    ArrowLeft: inExamples(() => examples.detail.step(-1)),
    w: inExamples(() => data.hasGold && examples.set({ wrong: !examples.filters.wrong })),
    c: inExamples(() => examples.set({ ...NONE })),
    Escape: () => {
      if (help.open) help.close();
      else if (examples) examples.close();
    },
  });
  show("overview");
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("chordal-painted")));
}

function failed(error) {
  const text =
    "DecompressionStream" in window
      ? `This page could not be opened: ${error}`
      : "This browser is too old for this page: it cannot unpack compressed data.";
  replace(document.getElementById("main"), h("p", { class: "nothing", role: "alert" }, text));
}

start().catch(failed);

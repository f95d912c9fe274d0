// A list of any length: only the rows in sight are in the page.

import { h, replace } from "./dom.js";

export class VirtualList {
  constructor({ label, rowHeight, row, choose, prefix = "row" }) {
    this.prefix = prefix;
    this.rowHeight = rowHeight;
    this.row = row;
    this.choose = choose;
    this.items = [];
    this.active = -1;
    this.rows = new Map();
    this.inner = h("div", { class: "rows", role: "presentation" });
    this.node = h(
      "div",
      {
        class: "list",
        role: "listbox",
        tabindex: "0",
        "aria-label": label,
        on: { scroll: () => this.draw(), keydown: (event) => this.key(event) },
      },
      this.inner,
    );
    new ResizeObserver(() => this.draw()).observe(this.node);
  }

  show(items) {
    this.items = items;
    this.active = -1;
    this.rows.clear();
    replace(this.inner);
    this.inner.style.setProperty("height", `${items.length * this.rowHeight}px`);
    this.node.scrollTop = 0;
    this.node.removeAttribute("aria-activedescendant");
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.node.scrollTop / this.rowHeight) - 4);
    const last = Math.min(
      this.items.length,
      Math.ceil((this.node.scrollTop + this.node.clientHeight) / this.rowHeight) + 4,
    );
    for (const [k, node] of this.rows) {
      if (k >= first && k < last) continue;
      node.remove();
      this.rows.delete(k);
    }
    for (let k = first; k < last; k++) {
      if (this.rows.has(k)) continue;
      const node = h(
        "div",
        {
          class: "row",
          role: "option",
          id: `${this.prefix}-${k}`,
          "aria-selected": String(k === this.active),
          "aria-setsize": this.items.length,
          "aria-posinset": k + 1,
          style: { top: `${k * this.rowHeight}px`, height: `${this.rowHeight}px` },
          on: { click: () => this.activate(k) },
        },
        this.row(this.items[k]),
      );
      this.rows.set(k, node);
      this.inner.append(node);
    }
  }

  activate(k, choose = true) {
    if (k < 0 || k >= this.items.length) return;
    this.rows.get(this.active)?.setAttribute("aria-selected", "false");
    this.active = k;
    const top = k * this.rowHeight;
    const height = this.node.clientHeight;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + this.rowHeight > this.node.scrollTop + height)
      this.node.scrollTop = top + this.rowHeight - height;
    this.draw();
    this.rows.get(k)?.setAttribute("aria-selected", "true");
    this.node.setAttribute("aria-activedescendant", `${this.prefix}-${k}`);
    if (choose) this.choose(this.items[k], k);
  }

  move(step) {
    this.activate(Math.min(Math.max(this.active + step, 0), this.items.length - 1));
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.rowHeight) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.items.length,
      End: this.items.length,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    event.stopPropagation();
    this.move(steps[event.key]);
  }
}

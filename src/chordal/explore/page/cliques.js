// The cliques of graphs: their members, and where the scores of each member begin.

import { starts } from "./block.js";

// The cliques of example i: [{ members, cells }], where cells are places in the example's own scores.
export function cliquesOf(data, columns, i, first) {
  if (!columns.clique_counts) return [];
  columns.clique_starts ??= starts(columns.clique_counts);
  columns.member_starts ??= starts(columns.clique_orders);
  const out = [];
  let cell = 0;
  for (let c = columns.clique_starts[i - first]; c < columns.clique_starts[i - first + 1]; c++) {
    const members = Array.from(
      columns.clique_members.subarray(columns.member_starts[c], columns.member_starts[c + 1]),
    );
    const cells = members.map((t) => {
      const here = cell;
      cell += data.setOf(i, t)[2];
      return here;
    });
    out.push({ members, cells });
  }
  return out;
}

// How many scores the cliques of an example have.
export function cellsOf(data, columns, i, first) {
  const cliques = cliquesOf(data, columns, i, first);
  return cliques.reduce((sum, { members }) => members.reduce((n, t) => n + data.setOf(i, t)[2], sum), 0);
}

// The cliques of one variable, and its place in each.
export function cliquesAt(details, t) {
  if (!details.incidence) {
    details.incidence = new Map();
    for (const clique of details.cliques)
      clique.members.forEach((u, place) => {
        if (!details.incidence.has(u)) details.incidence.set(u, []);
        details.incidence.get(u).push({ clique, place });
      });
  }
  return details.incidence.get(t) ?? [];
}

export function neighboursOf(details, t) {
  const found = new Set(cliquesAt(details, t).flatMap(({ clique }) => clique.members));
  found.delete(t);
  return [...found].sort((a, b) => a - b);
}

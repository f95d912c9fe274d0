// Colours of labels: those of one type ("B-NP", "I-NP") share one. Text always says the same.

// Okabe and Ito's palette: safe for colour-blind readers. The style sheet has the same as --g0 … --g7.
const BASE = [
  [0, 114, 178],
  [230, 159, 0],
  [0, 158, 115],
  [204, 121, 167],
  [86, 180, 233],
  [213, 94, 0],
  [148, 128, 30],
  [110, 110, 110],
];
const mixed = (end) => BASE.slice(0, 7).map((own) => own.map((v) => Math.round(0.55 * v + 0.45 * end)));
// Pictures of many labels have the same colours darker and lighter too; in the style sheet, --g8 … --g21.
const PALETTE = [...BASE, ...mixed(0), ...mixed(255)];

export function labelColours(labels) {
  const types = new Map();
  return labels.map((label) => {
    if (label === "O") return 7;
    const type = label.replace(/^[BIESLU]-/, "");
    if (!types.has(type)) types.set(type, types.size % 21);
    const own = types.get(type);
    return own < 7 ? own : own + 1; // 7 is "O"'s
  });
}

export function rgb(colour) {
  return PALETTE[colour];
}

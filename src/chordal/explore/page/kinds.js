// Kinds of examples: each says how it is named, found, drawn and explained.

import { graph } from "./kind_graph.js";
import { grid } from "./kind_grid.js";
import { labels } from "./kind_labels.js";
import { letters } from "./kind_letters.js";
import { row } from "./kind_row.js";
import { words } from "./kind_words.js";

export const KINDS = { text: words, letters, grid, row, labels, graph };

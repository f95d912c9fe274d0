// Small pictures: letters, images and labels of grids.

import { h } from "./dom.js";
import { rgb } from "./colours.js";

function canvas(width, height, colour, props) {
  const node = h("canvas", { width, height, role: "img", ...props });
  const context = node.getContext("2d");
  const image = context.createImageData(width, height);
  for (let k = 0; k < width * height; k++) {
    const [r, g, b, alpha = 255] = colour(k);
    image.data.set([r, g, b, alpha], 4 * k);
  }
  context.putImageData(image, 0, 0);
  return node;
}

export function letterCanvas(data, i, t, props = {}) {
  const pixels = data.letter(i, t);
  const ink = (k) => [0, 0, 0, pixels[k]];
  return canvas(data.summary.width, data.summary.height, ink, {
    class: "ink",
    "aria-label": `letter ${t + 1}`,
    ...props,
  });
}

// Contributions by pixel: blue for, vermilion against.
export function heatCanvas(width, height, values, props = {}) {
  const most = Math.max(...values.map(Math.abs), 1e-12);
  const colour = (k) => [...rgb(values[k] > 0 ? 0 : 5), Math.round((255 * Math.abs(values[k])) / most)];
  return canvas(width, height, colour, { "aria-label": "contributions of pixels", ...props });
}

export function imageCanvas(data, i, pixels, props = {}) {
  const channels = data.summary.channels;
  const colour = (k) =>
    channels === 3
      ? [pixels[3 * k], pixels[3 * k + 1], pixels[3 * k + 2]]
      : [pixels[k], pixels[k], pixels[k]];
  return canvas(data.list.widths[i], data.list.heights[i], colour, { "aria-label": "image", ...props });
}

export function labelCanvas(data, colours, i, labels, props = {}) {
  const begin = data.offsets[i];
  const colour = (k) =>
    labels[begin + k] === data.unobserved ? [0, 0, 0, 0] : rgb(colours[labels[begin + k]]);
  return canvas(data.list.widths[i], data.list.heights[i], colour, { "aria-label": "labels", ...props });
}

export function errorCanvas(data, i, props = {}) {
  const colour = (k) => (data.isWrong(i, k) ? [...rgb(5), 255] : [128, 128, 128, 40]);
  return canvas(data.list.widths[i], data.list.heights[i], colour, { "aria-label": "errors", ...props });
}

export function sureCanvas(data, i, marginals, props = {}) {
  const most = 1 - 1 / Math.max(data.nClasses, 2);
  const colour = (k) => [...rgb(5), Math.round((255 * (1 - marginals[k][0][1])) / most)];
  return canvas(data.list.widths[i], data.list.heights[i], colour, { "aria-label": "doubt", ...props });
}

// @ts-check
// Elements from data. Children are elements or text, and text only ever becomes a text node: nothing here reads HTML.

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | undefined | ((event: Event) => void)>} [attributes] a function is a listener, `true` an attribute without value, `false` and undefined none
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== undefined) node.setAttribute(name, String(value));
  }
  node.append(...children);
  return node;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const node = document.getElementById(id);
  if (node === null) throw new Error(`no element ${id}`);
  return node;
}

/** Sets text only where it changes: a selection in it survives. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Lets text grow where it only grew, so that a long output is not set anew with each piece.
 * @param {Node} node @param {string} text
 */
export function growText(node, text) {
  const last = node.lastChild;
  if (last instanceof Text && node.childNodes.length === 1 && text.length > last.length && text.startsWith(last.data)) {
    last.appendData(text.slice(last.length));
  } else setText(node, text);
}

/** An image's address if it is one that loads nothing from elsewhere. @param {string} url */
export const isInlineImage = (url) => /^data:image\/(png|jpe?g|gif|webp|avif|bmp);/i.test(url);

/** @param {string} url @param {string} alt @returns {HTMLElement} */
export function picture(url, alt) {
  if (isInlineImage(url)) return el("img", { class: "picture", src: url, alt });
  const shown = url.length > 200 ? `${url.slice(0, 200)}…` : url;
  return el("p", { class: "far-picture" }, `${alt} (not loaded): ${shown}`);
}

/** Announces something to screen readers and to nobody else. @param {string} text */
export const announce = (text) => setText(byId("announcer"), text);

// @ts-check
// The conversation follows its end as long as the reader is there; one who scrolled up is left where they are.

import { byId } from "./dom.js";

const NEAR_PX = 48;

export function scroller() {
  const box = byId("scroller");
  const button = byId("to-end");
  // Not every browser lets the keyboard reach what scrolls.
  box.tabIndex = 0;
  let isFollowing = true;
  let height = 0;

  const toEnd = () => {
    isFollowing = true;
    box.scrollTop = box.scrollHeight;
    button.hidden = true;
  };
  box.addEventListener(
    "scroll",
    () => {
      const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
      // What grew since is not the reader's doing.
      if (isAtEnd || box.scrollHeight === height) isFollowing = isAtEnd;
      height = box.scrollHeight;
      button.hidden = isFollowing;
    },
    { passive: true },
  );
  button.addEventListener("click", () => {
    toEnd();
    box.focus();
  });
  // The dock grows and shrinks with what is asked.
  new ResizeObserver(() => {
    if (isFollowing) toEnd();
  }).observe(box);

  return {
    toEnd,
    /** Changes the content and keeps what is in sight in its place. @param {() => void} change */
    keeping: (change) => {
      const fromEnd = box.scrollHeight - box.scrollTop;
      const top = byId("items").firstChild;
      change();
      // Older messages came before what was first.
      const isPrepended = top?.isConnected === true && byId("items").firstChild !== top;
      if (isFollowing) toEnd();
      else if (isPrepended) box.scrollTop = box.scrollHeight - fromEnd;
      height = box.scrollHeight;
      button.hidden = isFollowing;
    },
  };
}

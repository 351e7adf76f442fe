"use strict";
// Before anything is drawn: a dark page does not flash white.
document.documentElement.dataset.theme =
  matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

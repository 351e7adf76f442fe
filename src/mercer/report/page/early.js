"use strict";
// Before anything is drawn, so that no page flashes white at night.
document.documentElement.dataset.theme =
  matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";

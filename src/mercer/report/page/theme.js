"use strict";
mercer.setTheme = function (theme) {
  document.documentElement.dataset.theme = theme;
  for (const draw of mercer.charts) draw();
};

document.getElementById("theme").addEventListener("click", () => {
  mercer.setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  mercer.setTheme(event.matches ? "dark" : "light");
});

// Paper is white.
addEventListener("beforeprint", () => {
  mercer.theme = document.documentElement.dataset.theme;
  if (mercer.theme === "dark") mercer.setTheme("light");
});
addEventListener("afterprint", () => {
  if (mercer.theme === "dark") mercer.setTheme("dark");
});

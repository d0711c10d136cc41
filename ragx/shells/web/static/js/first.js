/* Runs before the first paint, so that a chosen theme does not flash. */
(() => {
  try {
    const chosen = localStorage.getItem("ragx.theme");
    if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  } catch {
    // Without storage the page follows the system.
  }
})();

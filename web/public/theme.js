// Runs before the first paint, so that a chosen theme never flashes. See src/ui/theme.ts.
(function () {
  try {
    var theme = localStorage.getItem('attune-theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch (_) {
    // Storage may be forbidden; the system's theme serves then.
  }
})();

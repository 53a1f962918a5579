// The remembered theme is set before the first paint, so that nothing flashes.
try {
	const theme = localStorage.getItem("quire-theme");
	if (theme) document.documentElement.dataset.theme = theme;
} catch { /* a browser without storage follows the system */ }

// The frame of the page: routes, the header, messages, undo, the key, the theme, the keys.

import { button, h, setCollections } from "./dom.js";
import { forgetKey, call, get, onKeyNeeded } from "./api.js";
import * as search from "./search.js";
import * as reader from "./reader.js";
import * as cuts from "./cuts.js";
import * as library from "./library.js";
import * as map from "./map.js";

const VIEWS = { "/": ["search", search], "/read": ["read", reader], "/cuts": ["cuts", cuts], "/library": ["library", library], "/map": ["map", map] };
const UNDO_MS = 10_000;
const main = document.getElementById("main");
const bars = document.getElementById("bars");
const live = document.getElementById("live");

export const app = {
	status: null, lastRead: null, hidden: new Set(), go, push, replace, title, fail, say, later, reload, can,
};

// ---- routes

let leave = null; // aborts the requests and listeners of the view that is left
let at = null;
let turn = 0;

function keepScroll() {
	history.replaceState({ ...history.state, scroll: window.scrollY, focus: document.activeElement?.dataset?.focus }, "");
}

function go(url) {
	keepScroll();
	history.pushState({ from: at }, "", url);
	show();
}

function push(url) {
	history.pushState({ from: at }, "", url);
}

function replace(url) {
	history.replaceState(history.state, "", url);
}

async function show({ back = false } = {}) {
	const [name, view] = VIEWS[location.pathname] || VIEWS["/"];
	const mine = ++turn;
	leave?.abort();
	leave = new AbortController();
	for (const link of document.querySelectorAll("#views a")) {
		if (link.dataset.view === name) link.setAttribute("aria-current", "page");
		else link.removeAttribute("aria-current");
	}
	const body = h(`div.view.${name}`);
	const isNew = at !== name;
	at = name;
	main.replaceChildren(body);
	main.setAttribute("aria-busy", "true");
	try {
		app.status ??= await get("status");
		framed();
		if (mine !== turn) return;
		await view.show(body, new URLSearchParams(location.search), leave.signal, { back, isNew });
		if (mine === turn) settle(body, back);
	} catch (problem) {
		if (problem.name === "AbortError" || mine !== turn) return;
		body.replaceChildren(h("div.empty", h("h1", problem.status === 404 ? "Not found" : "That did not work"), h("p", problem.message),
			button("Try again", () => show(), { class: "main" })));
		settle(body, false);
	}
}

function settle(body, back) {
	main.removeAttribute("aria-busy");
	const { scroll = 0, focus } = history.state || {};
	const known = back && focus && [...body.querySelectorAll("[data-focus]")].find((one) => one.dataset.focus === focus);
	const target = known || body.querySelector("[data-first]") || body.querySelector("h1");
	if (body.contains(document.activeElement)) return; // the view, or the reader of it, has chosen already
	if (target && !target.matches("a,button,input,select,textarea")) target.tabIndex = -1;
	target?.focus({ preventScroll: true });
	if (back) window.scrollTo(0, scroll);
	else if (!body.dataset.scrolled) window.scrollTo(0, 0);
}

function framed() {
	const { library: url, collections, access } = app.status;
	const name = url.split(/[\\/]/).pop() || url;
	const node = document.getElementById("library-name");
	node.textContent = name;
	const own = document.getElementById("own");
	own.hidden = !access.name;
	own.textContent = `${access.name} (${access.level}): sign out`;
	node.title = url;
	setCollections(Object.keys(collections));
}

async function reload() {
	app.status = await get("status");
	framed();
	return app.status;
}

const LEVELS = ["read", "write", "admin"];
function can(level) {
	const { access, read_only: readOnly } = app.status || {};
	if (readOnly && level === "write") return false;
	return LEVELS.indexOf(access?.level) >= LEVELS.indexOf(level);
}

function title(text) {
	document.title = text ? `${text} · Quire` : "Quire";
}

document.addEventListener("click", (event) => {
	const link = event.target.closest?.("a[href]");
	if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return undefined;
	if (link.target === "_blank" || link.origin !== location.origin || !(link.pathname in VIEWS)) return undefined;
	event.preventDefault();
	if (link.hash && link.pathname === location.pathname && link.search === location.search) return jump(link.hash.slice(1));
	return go(link.pathname + link.search + link.hash);
});

function jump(id) {
	const target = document.getElementById(decodeURIComponent(id));
	if (!target) return;
	target.tabIndex = -1;
	target.scrollIntoView();
	target.focus({ preventScroll: true });
}

// A file that is dropped beside its place must not replace the page.
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
addEventListener("popstate", () => show({ back: true }));
history.scrollRestoration = "manual";

// ---- messages

function bar(kind, text, ...more) {
	const node = h(`div.bar.${kind}`, { role: kind === "error" ? "alert" : "status" }, h("p", text), ...more);
	bars.append(node);
	return node;
}

function fail(problem) {
	if (problem.name === "AbortError") return;
	const node = bar("error", problem.message || String(problem));
	node.append(button("×", () => node.remove(), { class: "icon", "aria-label": "Close" }));
	setTimeout(() => node.remove(), 12_000);
}

function say(text, { quiet = false } = {}) {
	live.textContent = text;
	if (quiet) return;
	const node = bar("note", text);
	node.removeAttribute("role"); // the live region has said it
	setTimeout(() => node.remove(), 2500);
}

// ---- undo

const waiting = new Set();

function later({ text, addresses, path, body, changed }) {
	const one = { sent: false };
	let left = UNDO_MS / 1000;
	addresses.forEach((address) => app.hidden.add(address));
	const tell = () => { node.firstChild.textContent = `${text} in ${left} s.`; };
	const stop = () => {
		clearInterval(clock);
		waiting.delete(one);
		if (node.contains(document.activeElement)) main.focus({ preventScroll: true });
		node.remove();
	};
	const show = () => { addresses.forEach((address) => app.hidden.delete(address)); changed(); };
	one.send = async (keepalive = false) => {
		if (one.sent) return;
		one.sent = true;
		stop();
		try {
			await call(path, { body, keepalive });
			await reload();
		} catch (problem) {
			fail(problem);
		}
		show();
	};
	const undo = button("Undo", () => { stop(); show(); say("Undone."); });
	const node = bar("undo", "", undo, button("Now", () => one.send()));
	node.removeAttribute("role"); // nobody wants to hear each second
	const clock = setInterval(() => { left -= 1; tell(); if (left <= 0) one.send(); }, 1000);
	tell();
	say(`${text} in ${left} s.`, { quiet: true });
	waiting.add(one);
	changed();
	undo.focus();
}

addEventListener("pagehide", () => { for (const one of [...waiting]) one.send(true); });

// ---- dialogs

function dialog(name, ...children) {
	const node = h("dialog", { "aria-labelledby": `${name}-title` }, h("h2", { id: `${name}-title` }, ...[children.shift()].flat()), ...children);
	document.body.append(node);
	node.addEventListener("close", () => node.remove());
	node.showModal();
	return node;
}

onKeyNeeded((message) => new Promise((done) => {
	const input = h("input", { type: "password", name: "key", required: true, "aria-describedby": "key-why" });
	const form = h("form", { onsubmit: (event) => { event.preventDefault(); if (input.value.trim()) { done(input.value.trim()); node.close(); } } },
		h("p", { id: "key-why" }, message),
		h("label.field", h("span", "Key"), input),
		h("p.soft", "It stays in this tab and is sent with each request."),
		h("div.row", h("button.main", { type: "submit" }, "Continue"), button("Cancel", () => node.close())));
	const node = dialog("key", "A key is needed", form);
	node.addEventListener("close", () => done(null));
}));

const KEYS = [["/", "go to the search box"], ["↓ ↑", "move between results"], ["Enter", "open the result"],
	["Esc", "go back: from a result to the box, from the reader to the results"],
	["← → ↑ ↓", "in the cuts, move between chunks; on the map, move the map"], ["+ − 0", "on the map: larger, smaller, all of it"], ["?", "show these keys"]];

function help() {
	if (document.querySelector("dialog[open]")) return;
	const list = h("dl.keys", KEYS.map(([keys, what]) => [h("dt", keys.split(" ").map((one) => h("kbd", one))), h("dd", what)]));
	const node = dialog("keys", "Keys", list, h("div.row", button("Close", () => node.close(), { class: "main", autofocus: true })));
}

document.getElementById("keys").addEventListener("click", help);
document.getElementById("own").addEventListener("click", forgetKey);
addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input,textarea,select,dialog")) return;
	if (event.key === "?") help();
	else if (event.key === "/") {
		event.preventDefault();
		const box = document.getElementById("q");
		if (box) box.select();
		else go("/");
	}
});

// ---- theme

const themeButton = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => document.documentElement.dataset.theme || (dark.matches ? "dark" : "light");
const showTheme = () => { themeButton.setAttribute("aria-pressed", String(theme() === "dark")); dispatchEvent(new Event("themechange")); };
themeButton.addEventListener("click", () => {
	const next = theme() === "dark" ? "light" : "dark";
	document.documentElement.dataset.theme = next;
	try { localStorage.setItem("quire-theme", next); } catch { /* then it lasts until the page is left */ }
	showTheme();
});
dark.addEventListener("change", showTheme);
showTheme();

show();

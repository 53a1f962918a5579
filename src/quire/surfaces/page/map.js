// The documents as points by meaning: what lies near says something alike. The list beside it says the same in words.

import { check, counted, dot, h, hue, number, readUrl, button } from "./dom.js";
import { get } from "./api.js";
import { app } from "./app.js";

const MOST_LISTED = 300;
const [NEAREST, FARTHEST] = [0.6, 60];

export async function show(body, params, signal) {
	app.title("Map");
	const view = { body, signal, off: new Set(), twins: params.get("twins") === "true", scale: 1, x: 0, y: 0, over: null, pointers: new Map(), filter: "" };
	view.collection = params.get("collection") || "";
	body.append(h("h1.unseen", "Map"), h("p.soft.loading", "Drawing the map…"));
	const { points, labels, notes } = await get("map", { collection: view.collection }, signal);
	Object.assign(view, { points, labels, groups: groupsOf(points) });
	body.querySelector(".loading").remove();
	if (!points.length) return body.append(h("div.empty", h("p", "There is nothing to draw yet. The map needs documents with meaning: add some, then come back."), ...notes.map((note) => h("p.soft", note))));
	view.canvas = h("canvas", { tabindex: "0", role: "application", "aria-roledescription": "map", "aria-label": `Map of ${counted(points.length, "document")}. Arrow keys move it, plus and minus zoom. The list beside it has the same documents.` });
	view.tip = h("div.tip", { hidden: true });
	body.append(h("div.chart", view.canvas, view.tip, buttons(view)), side(view, notes));
	listen(view);
	resize(view);
	return undefined;
}

// ---- beside the map

function side(view, notes) {
	const again = () => { draw(view); list(view); };
	const counts = new Map();
	for (const { collection } of view.points) counts.set(collection, (counts.get(collection) || 0) + 1);
	const legend = h("ul.legend", [...counts].sort().map(([name, count]) => h("li", check([dot(name), name, h("small.soft", number(count))], { checked: true, onchange: ({ target }) => { view.off[target.checked ? "delete" : "add"](name); again(); } }))));
	const alike = view.groups.flat().length;
	view.list = h("div.points");
	const filter = h("input", { type: "search", "aria-label": "Filter the list", placeholder: "Filter the list", oninput: () => { view.filter = filter.value.trim().toLowerCase(); again(); } });
	const node = h("aside.beside", { "aria-label": "Documents on the map" },
		legend,
		alike ? check(`Show the ${number(alike)} that say nearly the same`, { checked: view.twins, onchange: ({ target }) => { view.twins = target.checked; keep(view); again(); } }) : h("p.soft", "No two documents say nearly the same."),
		notes.map((note) => h("p.soft", note)), filter, view.list);
	list(view);
	return node;
}

function keep(view) {
	const params = new URLSearchParams();
	if (view.collection) params.set("collection", view.collection);
	if (view.twins) params.set("twins", "true");
	app.replace(`/map${params.size ? `?${params}` : ""}`);
}

const isShown = (view, one) => !view.off.has(one.collection);
const isMatch = (view, one) => !view.filter || `${one.title} ${one.address}`.toLowerCase().includes(view.filter);

function list(view) {
	const item = (one) => h("li", h("a", { href: readUrl(one.address), "data-focus": one.address, onfocus: () => point(view, one), onpointerenter: () => point(view, one), onpointerleave: () => point(view, null), onblur: () => point(view, null) }, dot(one.collection), one.title || one.address), h("small.soft", one.address));
	const shown = (one) => isShown(view, one) && isMatch(view, one);
	if (view.twins) {
		const groups = view.groups.map((group) => group.filter(shown)).filter((group) => group.length > 1);
		return view.list.replaceChildren(h("h2", counted(groups.length, "group")), ...groups.slice(0, MOST_LISTED).map((group) => h("ul.plain.small.group", group.map(item))));
	}
	const all = view.points.filter(shown).sort((a, b) => (a.title || "").localeCompare(b.title || ""));
	const rest = all.length - MOST_LISTED;
	return view.list.replaceChildren(h("h2", counted(all.length, "document")), h("ul.plain.small", all.slice(0, MOST_LISTED).map(item)), rest > 0 ? h("p.soft", `and ${number(rest)} more. Filter to see them.`) : "");
}

// Documents that say nearly the same, as groups: whoever is a twin of a twin belongs to them.
function groupsOf(points) {
	const byAddress = new Map(points.map((one) => [one.address, one]));
	const near = new Map(points.map((one) => [one.address, new Set(one.twins)]));
	for (const { address, twins } of points) for (const twin of twins) near.get(twin)?.add(address);
	const seen = new Set();
	const groups = [];
	for (const one of points) {
		const group = [];
		const open = [one.address];
		while (open.length) {
			const address = open.pop();
			if (seen.has(address) || !byAddress.has(address)) continue;
			seen.add(address);
			group.push(byAddress.get(address));
			open.push(...near.get(address));
		}
		if (group.length > 1) groups.push(group);
	}
	return groups.sort((a, b) => b.length - a.length);
}

// ---- the canvas

function buttons(view) {
	const middle = () => [view.width / 2, view.height / 2];
	const tool = (text, name, work) => button(text, work, { class: "icon", "aria-label": name, title: name });
	return h("div.zoom", tool("+", "Larger", () => zoom(view, 1.5, ...middle())), tool("−", "Smaller", () => zoom(view, 1 / 1.5, ...middle())), tool("⤢", "All of it", () => whole(view)));
}

function resize(view) {
	const fit = () => {
		const box = view.canvas.getBoundingClientRect();
		const dots = devicePixelRatio || 1;
		[view.width, view.height] = [box.width, box.height];
		[view.canvas.width, view.canvas.height] = [box.width * dots, box.height * dots];
		view.context = view.canvas.getContext("2d");
		view.context.setTransform(dots, 0, 0, dots, 0, 0);
		draw(view);
	};
	const observer = new ResizeObserver(fit);
	observer.observe(view.canvas);
	view.signal.addEventListener("abort", () => observer.disconnect());
	addEventListener("themechange", () => { view.colours = null; draw(view); }, { signal: view.signal });
}

function coloursOf(view) {
	if (view.colours) return view.colours;
	const probe = h("span.unseen");
	view.body.append(probe);
	const resolved = (name, hues = "") => {
		probe.className = `unseen ${hues}`;
		probe.style.color = `var(--${name})`;
		return getComputedStyle(probe).color;
	};
	const hues = Object.fromEntries([...new Set(view.points.map((one) => one.collection))].map((name) => [name, resolved("hue", hue(name))]));
	view.colours = { hues, ink: resolved("ink"), soft: resolved("soft"), paper: resolved("card"), accent: resolved("accent"), font: getComputedStyle(view.body).fontFamily };
	probe.remove();
	return view.colours;
}

const half = (view) => Math.min(view.width, view.height) / 2 - 26;
const wide = (view) => Math.min(view.width / 2 - 26, half(view) * 1.5);
const at = (view, { x, y }) => [view.width / 2 + (x * wide(view)) * view.scale + view.x, view.height / 2 - (y * half(view)) * view.scale + view.y];
const radius = (view, one) => Math.min(12, 2.6 + Math.sqrt(one.chunks) * 0.65) * Math.min(2, view.scale ** 0.3);

const isFaded = (view, one) => (view.twins && !one.twins.length) || !isMatch(view, one);

function draw(view) {
	const { context: pen, width, height } = view;
	if (!pen) return;
	const colours = coloursOf(view);
	pen.clearRect(0, 0, width, height);
	const shown = view.points.filter((one) => isShown(view, one));
	if (view.twins) bonds(view, pen, colours);
	for (const one of shown) {
		const [x, y] = at(view, one);
		if (x < -20 || y < -20 || x > width + 20 || y > height + 20) continue;
		pen.globalAlpha = isFaded(view, one) ? 0.16 : 0.82;
		pen.fillStyle = colours.hues[one.collection];
		pen.beginPath();
		pen.arc(x, y, radius(view, one), 0, 7);
		pen.fill();
	}
	pen.globalAlpha = 1;
	texts(view, pen, colours, shown);
	if (view.over && isShown(view, view.over)) ring(view, pen, colours);
}

function bonds(view, pen, colours) {
	const byAddress = new Map(view.points.map((one) => [one.address, one]));
	pen.strokeStyle = colours.accent;
	pen.globalAlpha = 0.5;
	for (const one of view.points) {
		for (const twin of one.twins.map((address) => byAddress.get(address))) {
			if (!twin || !isShown(view, one) || !isShown(view, twin)) continue;
			pen.beginPath();
			pen.moveTo(...at(view, one));
			pen.lineTo(...at(view, twin));
			pen.stroke();
		}
	}
}

function texts(view, pen, colours, shown) {
	const taken = [];
	const write = (text, at, y, colour) => {
		if (at < 0 || y < 0 || at > view.width || y > view.height) return;
		const length = pen.measureText(text).width;
		const x = Math.max(length / 2 + 6, Math.min(at, view.width - length / 2 - 6));
		const box = [x - length / 2 - 4, y - 9, x + length / 2 + 4, y + 9];
		if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) return;
		taken.push(box);
		Object.assign(pen, { lineWidth: 4, lineJoin: "round", strokeStyle: colours.paper, fillStyle: colour });
		pen.strokeText(text, x, y);
		pen.fillText(text, x, y);
	};
	Object.assign(pen, { textAlign: "center", textBaseline: "middle", font: `600 13px ${colours.font}` });
	for (const label of view.labels) {
		const [x, y] = at(view, label);
		write(label.text, x, y - 16, colours.ink);
	}
	pen.font = `12px ${colours.font}`;
	const near = shown.filter((one) => { if (isFaded(view, one)) return false; const [x, y] = at(view, one); return x > 0 && y > 0 && x < view.width && y < view.height; });
	if (view.scale < 2 && near.length > 40) return;
	for (const one of near.sort((a, b) => b.chunks - a.chunks).slice(0, 60)) {
		const [x, y] = at(view, one);
		write((one.title || one.address).slice(0, 40), x, y + radius(view, one) + 9, colours.soft);
	}
}

function ring(view, pen, colours) {
	const [x, y] = at(view, view.over);
	Object.assign(pen, { strokeStyle: colours.ink, lineWidth: 2 });
	pen.beginPath();
	pen.arc(x, y, radius(view, view.over) + 4, 0, 7);
	pen.stroke();
}

function point(view, one) {
	if (view.over === one) return;
	view.over = one;
	view.tip.hidden = !one;
	view.canvas.classList.toggle("over", Boolean(one));
	if (one) {
		view.tip.replaceChildren(h("b", one.title || one.address), h("small", one.address), h("small", [counted(one.chunks, "chunk"), one.twins.length ? `${counted(one.twins.length, "document")} nearly the same` : ""].filter(Boolean).join(", ")));
		const [x, y] = at(view, one);
		const left = Math.max(8, Math.min(x + 14, view.width - view.tip.offsetWidth - 8));
		const top = y + 18 + view.tip.offsetHeight > view.height ? y - view.tip.offsetHeight - 12 : y + 14;
		view.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(Math.max(4, top))}px)`;
	}
	draw(view);
}

function nearest(view, x, y) {
	let best = null;
	let least = 16;
	for (const one of view.points) {
		if (!isShown(view, one)) continue;
		const [a, b] = at(view, one);
		const far = Math.hypot(a - x, b - y) - radius(view, one) * 0.5;
		if (far < least) [best, least] = [one, far];
	}
	return best;
}

function zoom(view, by, x, y) {
	const scale = Math.max(NEAREST, Math.min(FARTHEST, view.scale * by));
	const ratio = scale / view.scale;
	const [mx, my] = [x - view.width / 2, y - view.height / 2];
	[view.x, view.y, view.scale] = [mx - (mx - view.x) * ratio, my - (my - view.y) * ratio, scale];
	point(view, null);
	draw(view);
}

function pan(view, x, y) {
	view.x += x;
	view.y += y;
	point(view, null);
	draw(view);
}

function whole(view) {
	[view.scale, view.x, view.y] = [1, 0, 0];
	draw(view);
}

function listen(view) {
	const { canvas, pointers } = view;
	let moved = 0;
	const local = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
	canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(view, Math.exp(-event.deltaY / 400), ...local(event)); }, { passive: false });
	canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); pointers.set(event.pointerId, local(event)); moved = 0; });
	canvas.addEventListener("pointermove", (event) => {
		const now = local(event);
		const before = pointers.get(event.pointerId);
		if (!before) return point(view, nearest(view, ...now));
		const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
		if (other) {
			const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
			zoom(view, far(now, other) / Math.max(1, far(before, other)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
		} else if (moved + Math.hypot(now[0] - before[0], now[1] - before[1]) > 3) pan(view, now[0] - before[0], now[1] - before[1]);
		moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
		pointers.set(event.pointerId, now);
		return undefined;
	});
	const lift = (event) => {
		const one = pointers.size === 1 && moved < 5 && event.type === "pointerup" ? nearest(view, ...local(event)) : null;
		pointers.delete(event.pointerId);
		if (one) app.go(readUrl(one.address));
	};
	canvas.addEventListener("pointerup", lift);
	canvas.addEventListener("pointercancel", lift);
	canvas.addEventListener("pointerleave", () => { if (!pointers.size) point(view, null); });
	const keys = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
	canvas.addEventListener("keydown", (event) => {
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		if (keys[event.key]) pan(view, ...keys[event.key]);
		else if (event.key === "+" || event.key === "=") zoom(view, 1.3, view.width / 2, view.height / 2);
		else if (event.key === "-") zoom(view, 1 / 1.3, view.width / 2, view.height / 2);
		else if (event.key === "0") whole(view);
		else return;
		event.preventDefault();
	});
}

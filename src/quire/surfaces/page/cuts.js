// How strategies cut a document: its text with the chunks in colour, side by side, and how large they are.

import { bytes, check, counted, delay, field, h, number, place, refused, slicer, svg } from "./dom.js";
import { call, get, post } from "./api.js";
import { app } from "./app.js";

const STRATEGIES = {
	auto: "a section; long ones are cut between blocks", nodes: "the text under each heading, of any size", sections: "the largest part that fits",
	windows: "sentences up to the limit, overlapping", memory: "as windows, sized for memories", headers: "H2 and H3 sections of long documents",
};
const FIRST = ["auto", "windows"];
const BINS = 14;

export async function show(body, params, signal) {
	const given = params.getAll("strategy").filter((name) => name in STRATEGIES);
	const view = { body, signal, address: params.get("address"), file: null, chosen: new Set(given.length ? given : FIRST) };
	view.out = h("div.cut");
	view.about = h("p.facts", { role: "status" });
	view.heading = h("h1", "Cuts");
	view.shown = h("p.inspect", { role: "status" });
	body.append(h("div.cuthead", view.heading, view.about, chooser(view, params), settings(view, params)), view.out, view.shown);
	dropping(view);
	app.title("Cuts");
	await cut(view);
}

function chooser(view, params) {
	const input = h("input", { type: "file", class: "unseen", id: "cut-file", onchange: () => take(view, input.files[0]) });
	const list = h("datalist", { id: "addresses" });
	const address = h("input", { name: "address", value: params.get("address") || "", list: "addresses", placeholder: "docs:guide.md" });
	address.addEventListener("input", delay(150, async () => {
		const words = address.value.split(":").pop().trim();
		const { documents } = await get("documents", { path: words ? `*${words}*` : "", limit: 20 }, view.signal).catch(() => ({ documents: [] }));
		list.replaceChildren(...documents.map((one) => h("option", { value: one.address }, one.title)));
	}));
	const open = (event) => {
		event?.preventDefault();
		if (!address.value.trim()) return;
		[view.address, view.file] = [address.value.trim(), null];
		cut(view);
	};
	address.addEventListener("change", open);
	return h("form.chooser", { onsubmit: open }, field("A document of the library", address), list, h("span.or", "or"),
		input, h("label.button", { for: "cut-file" }, "Choose a file"), h("span.soft", "or drop one on this page. It is not added."));
}

function settings(view, params) {
	const again = delay(250, () => cut(view));
	const checks = Object.entries(STRATEGIES).map(([name, title]) => check(name, {
		title, value: name, checked: view.chosen.has(name),
		onchange: ({ target }) => { view.chosen[target.checked ? "add" : "delete"](name); cut(view); },
	}));
	const figure = (name, limits) => h("input", { type: "number", name, value: params.get(name) || "", placeholder: "default", oninput: again, ...limits });
	view.max = figure("max_tokens", { min: 1 });
	view.overlap = figure("overlap", { min: 0, max: 0.9, step: 0.05 });
	return h("div.settings", h("fieldset", h("legend", "Strategies"), checks), field("Most tokens", view.max), field("Overlap", view.overlap));
}

function dropping(view) {
	const on = (name, work) => addEventListener(name, work, { signal: view.signal });
	on("dragover", (event) => { event.preventDefault(); view.body.classList.add("dropping"); });
	on("dragleave", (event) => { if (!event.relatedTarget) view.body.classList.remove("dropping"); });
	on("drop", (event) => {
		event.preventDefault();
		view.body.classList.remove("dropping");
		if (event.dataTransfer.files[0]) take(view, event.dataTransfer.files[0]);
	});
}

function take(view, file) {
	if (!file) return;
	[view.file, view.address] = [file, null];
	cut(view);
}

function keep(view) {
	const params = new URLSearchParams();
	if (view.address) params.set("address", view.address);
	for (const name of view.chosen) params.append("strategy", name);
	for (const input of [view.max, view.overlap]) if (input.value) params.set(input.name, input.value);
	app.replace(`/cuts?${params}`);
}

async function cut(view) {
	if (view.signal.aborted) return undefined;
	keep(view);
	const strategies = [...view.chosen];
	if (!view.address && !view.file) return view.out.replaceChildren(h("div.empty.drop", h("p", "Drop any file here to see how each strategy would cut it."), h("p.soft", "Nothing is added to the library.")));
	if (!strategies.length) return view.out.replaceChildren(h("p.empty", "Choose a strategy."));
	view.request?.abort();
	view.request = new AbortController();
	const { signal } = view.request;
	const numbers = { max_tokens: Number(view.max.value) || undefined, overlap: view.overlap.value ? Number(view.overlap.value) : undefined };
	view.out.classList.add("waiting");
	try {
		const answer = view.file
			? await call("chunk/file", { bytes: view.file, query: { path: view.file.name, strategy: strategies, ...numbers }, signal })
			: await post("chunk", { address: view.address, strategies, ...numbers }, { signal });
		if (!view.signal.aborted) draw(view, answer);
	} catch (problem) {
		if (problem.name !== "AbortError") view.out.replaceChildren(refused(problem));
	} finally {
		view.out.classList.remove("waiting");
	}
	return undefined;
}

function draw(view, { document: doc, text, strategies }) {
	view.heading.textContent = doc.title || doc.path;
	app.title(`Cuts of ${doc.title || doc.path}`);
	view.about.replaceChildren(...[view.file ? `${doc.path} (not in the library)` : doc.path, bytes(doc.bytes), counted(doc.lines, "line"), ...doc.warnings].map((one) => h("span", one)));
	const slice = slicer(text);
	const largest = Math.max(1, ...strategies.flatMap(({ chunks }) => chunks.map(({ tokens }) => tokens)));
	const columns = strategies.map((one) => column(view, one, slice, doc.characters ?? text.length, largest));
	view.out.style.setProperty("--columns", String(columns.length));
	view.out.replaceChildren(...columns);
	together(columns.map((one) => one.querySelector(".text")).filter(Boolean));
	view.shown.textContent = "";
}

function column(view, { strategy, chunks, error }, slice, length, largest) {
	const sizes = chunks.map(({ tokens }) => tokens).sort((a, b) => a - b);
	const name = h("h2", strategy, h("small", STRATEGIES[strategy] || ""));
	if (error) return h("section.column", { "aria-label": strategy }, name, h("p.said.problem", error.message));
	const facts = sizes.length ? [counted(sizes.length, "chunk"), `${number(sizes[0])} to ${counted(sizes.at(-1), "token")}`, `median ${number(sizes[sizes.length >> 1])}`] : ["no chunks"];
	return h("section.column", { "aria-label": strategy }, h("header", name, h("p.facts", facts.map((one) => h("span", one))), histogram(sizes, largest)), coloured(view, chunks, slice, length));
}

function histogram(sizes, largest) {
	const bins = Array(BINS).fill(0);
	for (const size of sizes) bins[Math.min(BINS - 1, Math.floor((size / (largest + 1)) * BINS))] += 1;
	const most = Math.max(1, ...bins);
	const wide = 100 / BINS;
	const node = svg("svg", { viewBox: "0 0 100 34", preserveAspectRatio: "none", class: "histogram", role: "img", "aria-label": `Sizes of ${counted(sizes.length, "chunk")}, up to ${counted(largest, "token")}` });
	bins.forEach((count, at) => {
		const high = count ? Math.max(1.5, (count / most) * 32) : 0.4;
		const title = svg("title", {});
		title.textContent = `${number(Math.round((at * largest) / BINS))} to ${number(Math.round(((at + 1) * largest) / BINS))} tokens: ${counted(count, "chunk")}`;
		node.append(svg("rect", { x: at * wide + 0.4, width: wide - 0.8, y: 34 - high, height: high }, title));
	});
	return h("figure", node, h("figcaption", { "aria-hidden": "true" }, h("span", "0"), h("span", counted(largest, "token"))));
}

// Where chunks overlap, the text belongs to both.
function coloured(view, chunks, slice, length) {
	const node = h("pre.text");
	const edges = [...new Set([0, length, ...chunks.flatMap(({ start, end }) => [start, end])])].sort((a, b) => a - b);
	let next = 0;
	let open = [];
	for (let at = 0; at + 1 < edges.length; at += 1) {
		const [from, to] = [edges[at], edges[at + 1]];
		open = open.filter(({ end }) => end > from);
		const begun = [];
		while (next < chunks.length && chunks[next].start <= from) begun.push(chunks[next++]);
		open.push(...begun.filter(({ end }) => end > from));
		const piece = h("span", { class: open.length > 1 ? "both" : open.length ? `cut${open[0].index % 2}` : "uncut" }, slice(from, to));
		piece.dataset.of = open.map(({ index }) => index).join(" ");
		node.append(...begun.map((one) => label(view, node, one)), piece);
	}
	inspecting(view, node, chunks);
	return node;
}

function label(view, node, one) {
	const name = [...(one.trail || [])].pop() || "";
	return h(`button.label.cut${one.index % 2}`, { type: "button", tabindex: one.index ? "-1" : "0", "data-of": String(one.index),
		"aria-label": `Chunk ${one.index + 1}: ${name}, ${place(one)}, ${counted(one.tokens, "token")}` }, number(one.index + 1));
}

function inspecting(view, node, chunks) {
	const byIndex = new Map(chunks.map((one) => [String(one.index), one]));
	let lit = "";
	const inspect = (event) => {
		const of = event.target.dataset?.of;
		if (!of || of === lit) return;
		lit = of;
		const all = of.split(" ");
		for (const part of node.children) part.classList.toggle("on", part.dataset.of.split(" ").some((index) => all.includes(index)));
		view.shown.replaceChildren(...all.map((index) => h("span", detail(byIndex.get(index)))));
	};
	node.addEventListener("pointerover", inspect);
	node.addEventListener("focusin", inspect);
	node.addEventListener("click", inspect);
	node.addEventListener("keydown", (event) => step(node, event));
}

const detail = (one) => [h("b", `Chunk ${number(one.index + 1)}`), ` ${(one.trail || []).join(" › ")}`, h("i", `${place(one)}, ${counted(one.tokens, "token")}`)];

const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

function step(node, event) {
	const all = [...node.querySelectorAll("button.label")];
	const at = all.indexOf(document.activeElement);
	const to = event.key === "Home" ? 0 : event.key === "End" ? all.length - 1 : at + (STEPS[event.key] || NaN);
	if (at < 0 || !all[to]) return;
	event.preventDefault();
	all[at].tabIndex = -1;
	all[to].tabIndex = 0;
	all[to].focus({ preventScroll: true });
	node.scrollTo({ top: all[to].offsetTop - node.offsetTop - node.clientHeight / 3 });
}

// Columns scroll together, by their share of the text.
function together(panes) {
	let leading = null;
	const rest = delay(120, () => { leading = null; });
	for (const pane of panes) {
		pane.addEventListener("scroll", () => {
			leading ??= pane;
			rest();
			if (leading !== pane) return;
			const share = pane.scrollTop / Math.max(1, pane.scrollHeight - pane.clientHeight);
			for (const other of panes) if (other !== pane) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
		}, { passive: true });
	}
}


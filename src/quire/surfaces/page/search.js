// Search as you type: filters, results, and why each of them was found. The URL holds the whole question.

import { age, button, check, counted, dot, entry, field, h, marked, number, place, readUrl, refused, select, webLink } from "./dom.js";
import { get } from "./api.js";
import { app } from "./app.js";

const PAUSE_MS = 90; // between two searches while one types
const LIMITS = [10, 30, 100];
const KINDS = [["", "All documents"], ["document", "Own documents"], ["external", "External documents"], ["memory", "Memories"], ["knowledge", "Knowledge"]];
const MODES = [["", "Words and meaning"], ["keyword", "Words only"], ["semantic", "Meaning only"]];
const REMEMBERED = ["memory", "knowledge"];
const FILTERS = ["collection", "kind", "tag", "path", "mode", "rerank"];

let known = { url: null, answer: null }; // so that going back is instant

export async function show(body, params, signal, { back }) {
	const view = { body, signal, params, limit: LIMITS[0], asked: null };
	const box = h("input", { id: "q", type: "search", value: params.get("q") || "", placeholder: placeholder(), enterkeyhint: "search", "aria-label": "Search", "aria-controls": "results", "data-first": back ? null : "" });
	view.box = box;
	view.count = h("p.count", { role: "status", "aria-live": "polite" });
	view.results = h("div", { id: "results" });
	let timer = 0;
	const changed = () => { timer ||= setTimeout(() => { timer = 0; ask(view); }, PAUSE_MS); };
	box.addEventListener("input", changed);
	body.append(
		h("h1.unseen", "Search"),
		h("form.search", { role: "search", onsubmit: (event) => { event.preventDefault(); focusFirst(view); } },
			h("div.box", box), filters(view, changed), h("div.row.told", view.count, view.again)),
		view.results);
	body.addEventListener("keydown", (event) => move(view, event));
	await ask(view, { first: true });
}

function placeholder() {
	const { documents } = app.status;
	return documents ? `Search ${counted(documents, "document")}` : "Nothing to search yet";
}

function filters(view, changed) {
	const given = (name) => view.params.get(name) || "";
	const now = () => ask(view);
	const collections = [["", "All collections"], ...Object.entries(app.status.collections).map(([name, count]) => [name, `${name} (${number(count)})`])];
	view.fields = {
		collection: select("collection", collections, given("collection"), now),
		kind: select("kind", KINDS, given("kind"), now),
		mode: select("mode", MODES, given("mode"), now),
		tag: h("input", { name: "tag", value: view.params.getAll("tag").join(" "), placeholder: "any", oninput: changed }),
		path: h("input", { name: "path", value: given("path"), placeholder: "any, or guide/*", oninput: changed }),
	};
	view.again = check("Read the best again", { title: "Takes longer; the order is better", checked: given("rerank") === "true", onchange: now });
	view.fields.rerank = view.again.control;
	const { collection, kind, mode, tag, path } = view.fields;
	const isSet = FILTERS.some((name) => view.params.get(name));
	const wide = matchMedia("(min-width: 44rem)").matches;
	return h("details.filters", { open: wide || isSet },
		h("summary", "Filters"),
		h("div.fields", field("Collection", collection), field("Kind", kind), field("Search by", mode), field("Tag", tag), field("Path", path)));
}

function question(view) {
	const { collection, kind, mode, tag, path, rerank } = view.fields;
	const isRemembered = REMEMBERED.includes(kind.value);
	path.disabled = rerank.disabled = isRemembered;
	return {
		q: view.box.value.trim(), collection: collection.value, kind: kind.value, mode: mode.value, tag: tag.value.split(/[\s,]+/).filter(Boolean),
		path: isRemembered ? "" : path.value.trim(), rerank: !isRemembered && rerank.checked ? "true" : "",
	};
}

function urlOf(asked) {
	const params = new URLSearchParams();
	for (const [name, value] of Object.entries(asked)) for (const one of [value].flat()) if (one) params.append(name, one);
	return params.size ? `/?${params}` : "/";
}

let [pause, settled] = [0, false];

async function ask(view, { first = false } = {}) {
	view.request?.abort();
	if (view.signal.aborted) return;
	const asked = question(view);
	const url = urlOf(asked);
	(settled && !first ? app.push : app.replace)(url); // so that Back leads to the question before
	settled = false;
	clearTimeout(pause);
	pause = setTimeout(() => { settled = Boolean(asked.q); }, 1500);
	app.title(asked.q || "Search");
	if (!asked.q) return welcome(view);
	view.request = new AbortController();
	view.signal.addEventListener("abort", () => view.request.abort(), { once: true });
	const key = `${url} ${view.limit}`;
	const slow = setTimeout(() => view.results.classList.add("waiting"), 250);
	try {
		const answer = first && known.url === key ? known.answer : await fetched(asked, view.limit, view.request.signal);
		known = { url: key, answer };
		draw(view, asked, answer);
	} catch (problem) {
		if (problem.name === "AbortError") return;
		if (first && problem.status === 401) throw problem;
		view.count.textContent = "";
		view.results.replaceChildren(refused(problem));
	} finally {
		clearTimeout(slow);
		view.results.classList.remove("waiting");
	}
}

function fetched({ q, collection, kind, mode, tag, path, rerank }, limit, signal, explain = "") {
	if (REMEMBERED.includes(kind)) return get("recall", { q, kind, collection, tag, mode, limit }, signal);
	return get("search", { q, collection, kind, mode, tag, path, rerank, limit, explain }, signal);
}

// ---- what is shown

async function welcome(view) {
	view.count.textContent = "";
	const { documents, collections } = app.status;
	if (!documents) return view.results.replaceChildren(emptyLibrary());
	const names = Object.entries(collections).filter(([, count]) => count);
	const chips = h("ul.chips", names.map(([name, count]) => h("li", h("a.chip", { href: `/library?part=documents&collection=${encodeURIComponent(name)}` },
		dot(name), name, h("small", number(count))))));
	const { documents: newest } = await get("documents", { order: "newest", limit: 8 }, view.signal);
	if (view.box.value.trim()) return undefined;
	const recent = h("ul.plain", newest.map((one) => h("li", entry(one, ` · ${age(one.updated_at)}`))));
	return view.results.replaceChildren(h("section.welcome", h("h2", "Collections"), chips, h("h2", "Newest"), recent));
}

function emptyLibrary() {
	return h("div.empty", h("h2", "This library is empty"),
		h("p", "Add a folder, some files, a page or a whole site. Then everything in it can be searched by words and by meaning."),
		app.can("write") ? h("p", h("a.main", { href: "/library", role: "button" }, "Add documents")) : null,
		h("p.soft", "In the terminal: ", h("code", "quire add ./docs")));
}

function draw(view, asked, answer) {
	const { results, notes } = answer;
	const shown = results.filter((one) => !app.hidden.has(one.address.split("#")[0]));
	const found = shown.length ? counted(shown.length, "result") : "Nothing found";
	view.count.textContent = answer.good_match || !shown.length ? found : `No good match. ${found}, none of them close.`;
	view.count.classList.toggle("poor", !answer.good_match && shown.length > 0);
	const list = h("ol.results", shown.map((one) => resultNode(view, asked, one)));
	const next = LIMITS.find((limit) => limit > view.limit);
	const more = results.length >= view.limit && next
		? button("Show more", () => { view.limit = next; ask(view); }, { class: "more" }) : null;
	view.results.replaceChildren(...[notes.length ? notesNode(notes) : null, shown.length ? list : nothing(asked), more].filter(Boolean));
}

const notesNode = (notes) => h("ul.notes", notes.map((note) => h("li", note)));

function nothing(asked) {
	const isFiltered = FILTERS.some((name) => [asked[name]].flat().some(Boolean));
	return h("div.empty", h("p", isFiltered ? "No document that passes the filters answers this." : "No document has these words or this meaning."),
		isFiltered ? h("p", h("a", { href: urlOf({ q: asked.q }) }, "Search everything")) : null);
}

function resultNode(view, asked, one) {
	const trail = [...one.trail];
	const last = trail.pop() || one.title || one.path;
	const why = h("div.why", { hidden: true });
	const asks = button("Why this result", () => explain(asked, one, asks, why), { class: "quiet", "aria-expanded": "false" });
	const link = h("a.name", { href: readUrl(one.address, asked.q), "data-focus": one.address }, last);
	const original = webLink(one.link);
	return h("li.result",
		h("p.trail", dot(one.collection), h("span", one.collection), trail.map((step) => [h("i", { "aria-hidden": "true" }, "›"), h("span", step)])),
		h("h2", link),
		h("p.snippet", marked(one.snippet, one.highlights, opening(one.snippet, last))),
		h("p.facts", strength(one), h("span", MATCHES[one.match] || one.match), h("span", size(one)), h("span", place(one)),
			one.merged_from.length ? h("span", `${counted(one.merged_from.length, "section")} in one`) : null,
			one.stale ? h("span.tag.warn", { title: "The file has changed since it was indexed" }, "changed since") : null,
			one.promotion !== "standard" ? h("span.tag.good", one.promotion) : null,
			one.kind !== "document" ? h("span.tag", one.kind) : null,
			one.tags.map((tag) => h("span.tag", `#${tag}`)),
			original ? h("a", { href: original, target: "_blank", rel: "noopener noreferrer" }, "original") : null,
			REMEMBERED.includes(one.kind) ? null : asks),
		why);
}

// A snippet that begins with the heading would say it twice.
function opening(snippet, heading) {
	const hashes = /^#{1,6} /.exec(snippet)?.[0] || "";
	const both = `${hashes}${heading} `;
	return Array.from(hashes && snippet.startsWith(both) && snippet.length > both.length ? both : hashes).length;
}

const MATCHES = { keyword: "words", semantic: "meaning", both: "words and meaning" };

function strength(one) {
	const label = one.strength === "none" ? "poor match" : `${one.strength} match`;
	const meter = h("span.meter", { "aria-hidden": "true" }, h("span"));
	meter.firstChild.style.width = `${Math.round(one.confidence * 100)}%`;
	return h(`span.strength.${one.strength}`, { title: "The chance that it answers, at least" }, meter, `${label} `, h("b", one.confidence.toFixed(2)));
}

function size(one) {
	if (!one.parent) return counted(one.tokens, "token");
	return `${number(one.tokens)} of ${counted(one.parent_tokens, "token")} in ${one.parent_title || one.parent}`;
}

// ---- why

const REASONS = [
	["words", "Words", "how well its words match, beside the best result"],
	["meaning", "Meaning", "how near its meaning is to the question"],
	["covers", "Covers", "the share of your words that it has; rare words count more"],
	["heading", "Heading", "how much of its heading you asked for"],
	["whole", "Whole document", "the share of your words that only the rest of its document has"],
];

async function explain(asked, one, asks, why) {
	const isOpen = asks.getAttribute("aria-expanded") === "true";
	asks.setAttribute("aria-expanded", String(!isOpen));
	why.hidden = isOpen;
	if (isOpen || why.childElementCount) return;
	try {
		const { results } = await fetched(asked, 100, undefined, "true");
		const same = results.find(({ address }) => address === one.address);
		if (!same?.explain) throw new Error("The library has changed. Search again to see why.");
		why.replaceChildren(...reasons(same.explain));
	} catch (problem) {
		app.fail(problem);
	}
}

function reasons({ terms, hits, score }) {
	const [best] = hits;
	const rows = REASONS.map(([name, label, what]) => bar(label, what, best[name], best[name].toFixed(2)));
	const isReread = Boolean(best.logit || best.added);
	rows.push(bar("Reread", isReread ? "what reading it again with the question added to its score" : "it was not read again; “Read the best again” does that",
		isReread ? Math.min(1, Math.abs(best.added)) : 0, isReread ? best.added.toFixed(2) : "–", best.added < 0));
	const others = hits.length - 1;
	const told = [`Score ${score.toFixed(2)}, ranked ${best.rank ?? "by its neighbours"}.`, terms.length ? `Word stems: ${terms.join(", ")}.` : "",
		others ? `${counted(others, "more chunk")} of it matched too.` : ""];
	return [h("dl.bars", rows), h("p.soft", told.filter(Boolean).join(" "))];
}

function bar(label, what, share, value, isLess = false) {
	const full = h("span", { class: isLess ? "less" : null });
	full.style.width = `${Math.round(Math.max(0, Math.min(1, share)) * 100)}%`;
	return [h("dt", label, h("small", what)), h("dd", h("span.track", { "aria-hidden": "true" }, full), h("span", value))];
}

// ---- keys

const names = (view) => [...view.results.querySelectorAll("a.name")];

function focusFirst(view) {
	names(view)[0]?.focus();
}

function move(view, event) {
	if (event.ctrlKey || event.metaKey || event.altKey) return;
	const all = names(view);
	const at = all.indexOf(event.target.closest("li.result")?.querySelector("a.name"));
	if (event.key === "Escape" && at >= 0) view.box.focus();
	else if (event.key === "ArrowDown" && (event.target === view.box || at >= 0)) all[Math.min(at + 1, all.length - 1)]?.focus();
	else if (event.key === "ArrowUp" && at >= 0) (at ? all[at - 1] : view.box).focus();
	else return;
	event.preventDefault();
	document.activeElement.closest("li.result")?.scrollIntoView({ block: "nearest" });
}

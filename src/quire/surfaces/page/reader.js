// A document as it is meant to be read: contents beside it, the passage that was found, its links, its citation.

import { age, button, bytes, copy, counted, cutsUrl, dot, entry, h, number, place, PROMOTIONS, readUrl, select, webLink } from "./dom.js";
import { download, get, post } from "./api.js";
import { app } from "./app.js";

export async function show(body, params, signal, { back: isBack }) {
	const address = params.get("address") || app.lastRead;
	if (!address) return choose(body, signal);
	const q = params.get("q") || "";
	if (!params.get("address")) app.replace(readUrl(address));
	const shown = await get("render", { address }, signal);
	const { document: doc, focus, sections } = shown;
	app.lastRead = address;
	app.title(doc.title || doc.path);
	const view = { body, signal, q, doc, sections, target: focus?.address || doc.address, pin: focus?.anchor };
	view.article = h("article.prose", { lang: "" });
	view.article.innerHTML = shown.html; // the one place: the server has sanitised it
	view.place = h("code.address", view.target);
	body.append(
		h("aside.contents", { "aria-label": "Contents" }, contents(view)),
		h("div.page", head(view, shown), view.article),
		h("aside.about", { "aria-label": "About this document" }, actions(view), h("div.links")));
	body.addEventListener("keydown", (event) => { if (event.key === "Escape" && q && !event.target.closest("input,select")) back(view); });
	if (focus) reveal(view, focus, isBack);
	watch(view);
	links(view);
	return undefined;
}

async function choose(body, signal) {
	app.title("Reader");
	const { documents } = await get("documents", { order: "newest", limit: 20 }, signal);
	const list = h("ul.plain", documents.map((one) => h("li", entry(one))));
	body.append(h("div.narrow", h("h1", "Read a document"),
		documents.length ? h("p.soft", "Open one from a search, or choose one of the newest.") : h("p", "The library is empty. ", h("a", { href: "/library" }, "Add documents")), list));
}

function head(view, { stale, focus }) {
	const { doc, article, q } = view;
	const first = article.querySelector("h1");
	const isTitled = first && first.textContent.trim() === doc.title.trim();
	if (isTitled) first.tabIndex = -1;
	const came = q ? h("a.back", { href: `/?q=${encodeURIComponent(q)}`, onclick: (event) => { event.preventDefault(); back(view); } }, `← Results for “${q}”`) : null;
	return h("header.head", came,
		isTitled ? null : h("h1", doc.title || doc.path),
		h("p.facts", h("span", dot(doc.collection), doc.collection), h("span", counted(doc.tokens, "token")), h("span", bytes(doc.size)),
			h("span", { title: new Date(doc.updated_at).toLocaleString() }, `indexed ${age(doc.updated_at)}`),
			doc.kind !== "document" ? h("span.tag", doc.kind) : null,
			stale ? h("span.tag.warn", "changed since it was indexed") : null,
			focus ? h("span.tag.good", `found at ${place(focus)}`) : null));
}

function back(view) {
	if (history.state?.from === "search") history.back();
	else app.go(`/?q=${encodeURIComponent(view.q)}`);
}

// ---- contents

function contents(view) {
	const rows = view.sections.filter((one, index) => index || view.sections.length === 1);
	const least = Math.min(...rows.map((one) => one.depth));
	const list = h("ol", rows.map((one) => {
		const link = h("a", { href: readUrl(one.address, view.q), onclick: (event) => jump(view, one, event), title: counted(one.tokens, "token") }, one.title);
		link.dataset.anchor = one.anchor;
		return h(`li.depth${Math.min(4, one.depth - least)}`, link);
	}));
	const wide = matchMedia("(min-width: 62rem)").matches;
	return h("details", { open: wide }, h("summary", "Contents"), list);
}

const anchored = (view, anchor) => (anchor ? [...view.article.querySelectorAll("[id]")].find((one) => one.id === anchor) : null);

function jump(view, section, event) {
	if (event.ctrlKey || event.metaKey || event.shiftKey) return;
	event.preventDefault();
	[view.target, view.pin] = [section.address, section.anchor];
	view.place.textContent = section.address;
	app.replace(readUrl(section.address, view.q));
	app.lastRead = section.address;
	const heading = anchored(view, section.anchor);
	if (!heading) return window.scrollTo(0, 0);
	heading.tabIndex = -1;
	heading.scrollIntoView();
	view.mark();
	return heading.focus({ preventScroll: true });
}

function watch(view) {
	const marks = new Map([...view.body.querySelectorAll(".contents a")].map((link) => [link.dataset.anchor, link]));
	const headings = [...view.article.querySelectorAll("[id]")].filter((one) => marks.has(one.id));
	const above = new Set();
	const mark = view.mark = () => {
		const pinned = view.pin && headings.find((one) => one.id === view.pin);
		const now = pinned || headings.findLast((one) => above.has(one)) || headings[0];
		for (const [anchor, link] of marks) {
			if (anchor !== now?.id) link.removeAttribute("aria-current");
			else if (!link.hasAttribute("aria-current")) {
				link.setAttribute("aria-current", "true");
				if (view.body.querySelector(".contents").scrollHeight > innerHeight) link.scrollIntoView({ block: "nearest" });
			}
		}
	};
	const observer = new IntersectionObserver((entries) => {
		for (const { target, boundingClientRect: box, rootBounds: root } of entries) {
			if (box.top < (root?.bottom ?? innerHeight * 0.35)) above.add(target);
			else above.delete(target);
		}
		mark();
	}, { rootMargin: "100000px 0px -65% 0px" });
	headings.forEach((one) => observer.observe(one));
	// A section that was asked for is the current one until the reader scrolls.
	const unpin = () => { view.pin = null; };
	for (const name of ["wheel", "touchmove", "keydown"]) addEventListener(name, unpin, { signal: view.signal, passive: true });
	view.signal.addEventListener("abort", () => observer.disconnect());
}

// ---- the passage that was found

function reveal(view, { start_line: from, end_line: to, anchor }, isBack) {
	const hits = [];
	const take = (node) => {
		const [first, last] = [Number(node.dataset.line), Number(node.dataset.end)];
		if (last < from || first > to) return;
		const inner = [...node.querySelectorAll("[data-line]")];
		if (inner.length && (first < from || last > to)) inner.filter((one) => one.parentElement.closest("[data-line]") === node).forEach(take);
		else hits.push(node);
	};
	[...view.article.querySelectorAll("[data-line]")].filter((one) => !one.parentElement.closest("[data-line]")).forEach(take);
	const wraps = runs(hits).map(framed);
	light(view, hits);
	const first = wraps[0] || anchored(view, anchor);
	if (!first || isBack) return;
	view.body.dataset.scrolled = "yes";
	requestAnimationFrame(() => {
		first.scrollIntoView({ block: "start" });
		first.tabIndex = -1;
		first.focus({ preventScroll: true });
	});
}

// Blocks that follow each other are one passage.
function runs(hits) {
	const all = [];
	for (const one of hits) {
		if (all.at(-1)?.at(-1).nextElementSibling === one) all.at(-1).push(one);
		else all.push([one]);
	}
	return all;
}

function framed(run) {
	const isLoose = /^(ARTICLE|DIV|SECTION|BLOCKQUOTE)$/.test(run[0].parentElement.tagName);
	const frame = isLoose ? h("div") : run[0];
	if (isLoose) {
		run[0].before(frame);
		frame.append(...run);
	}
	for (const one of isLoose ? [frame] : run) one.classList.add("hit");
	return frame;
}

const COMMON = new Set("and are can does for from has have how into its not that the their then there this was what when where which who why will with you your".split(" "));

// The words of the question are painted by the browser; the document stays as it is.
function light(view, hits) {
	const words = (view.q.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) || []).filter((word) => !COMMON.has(word));
	if (!words.length || !window.Highlight) return;
	const ranges = [];
	const found = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.map((word) => (word.length > 4 ? `${word.slice(0, Math.max(5, word.length - 3))}[\\p{L}\\p{N}]*` : `${word.replace(/s$/, "")}s?`)).join("|")})(?![\\p{L}\\p{N}])`, "giu");
	for (const hit of hits) {
		const walker = document.createTreeWalker(hit, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) {
			for (const match of walker.currentNode.data.matchAll(found)) {
				const range = new Range();
				range.setStart(walker.currentNode, match.index);
				range.setEnd(walker.currentNode, match.index + match[0].length);
				ranges.push(range);
			}
		}
	}
	CSS.highlights.set("asked", new Highlight(...ranges));
	view.signal.addEventListener("abort", () => CSS.highlights.delete("asked"));
}

// ---- what can be done with it

function actions(view) {
	const { doc } = view;
	const safely = (work) => () => work().catch(app.fail);
	const original = webLink(doc.url);
	return h("div.actions", h("h2", "This place"), view.place,
		h("div.stack",
			button("Copy address", safely(async () => { await copy(view.target); app.say("Address copied."); })),
			button("Copy citation", safely(() => copyCitation(view))),
			button("Copy as context", safely(() => copyContext(view))),
			original ? h("a", { href: original, target: "_blank", rel: "noopener noreferrer", role: "button" }, "Open the original") : null,
			h("a", { href: cutsUrl(doc.address), role: "button" }, "See its cuts"),
			button("Download the text", safely(() => save(doc)))),
		promotion(view));
}

function promotion({ doc }) {
	if (doc.kind !== "document") return null;
	if (!app.can("write")) return h("p.soft", `Promotion: ${doc.promotion}`);
	const chosen = select("promotion", PROMOTIONS.map((level) => [level, level]), doc.promotion, async () => {
		try {
			doc.promotion = (await post("promote", { address: doc.address, level: chosen.value })).promotion;
			app.say(`Now ${doc.promotion}.`);
		} catch (problem) {
			app.fail(problem);
		}
		chosen.value = doc.promotion;
	});
	return h("label.field", h("span", "Promotion"), chosen, h("small", "Searches rank important documents higher."));
}

const escaped = (text) => text.replace(/[\\[\]*_`]/g, "\\$&");

async function copyCitation(view) {
	const read = await get("read", { address: view.target });
	const name = escaped(read.breadcrumb.replace(/^>\s*/, "") || view.doc.title);
	const link = webLink(read.link) || webLink(view.doc.url);
	await copy(`${link ? `[${name}](${link})` : name}, ${place(read)}, \`${read.address}\``);
	app.say("Citation copied.");
}

async function copyContext(view) {
	const read = await get("read", { address: view.target });
	const longest = Math.max(2, ...(read.text.match(/`+/g) || []).map((run) => run.length));
	const fence = "`".repeat(longest + 1);
	const name = read.breadcrumb.replace(/^>\s*/, "");
	await copy(`From ${read.address} (${name}, ${place(read)}):\n\n${fence}\n${read.text.replace(/\n$/, "")}\n${fence}\n`);
	app.say(`Copied, ${counted(read.tokens, "token")}.`);
}

async function save(doc) {
	const url = URL.createObjectURL(await download("source", { address: doc.address }));
	const link = h("a", { href: url, download: doc.path.split("/").pop() || "document" });
	link.click();
	setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function links(view) {
	try {
		const { out, back: from } = await get("links", { address: view.doc.address }, view.signal);
		const own = ({ address }) => address.split("#")[0] === view.doc.address;
		const near = (address) => (address.startsWith(`${view.doc.collection}:`) ? address.slice(view.doc.collection.length + 1) : address);
		const linked = (one, target) => h("li", target ? h("a", { href: readUrl(target) }, one.text || target) : h("span.broken", { title: `${one.written} leads to nothing in the library` }, one.text || one.written),
			h("small.soft", target && target !== one.text ? near(target) : `line ${number(one.line)}`));
		const known = out.filter(({ target }) => target && !own({ address: target }));
		const broken = out.filter(({ target, written }) => !target && !/^[a-z]+:/i.test(written || ""));
		const listed = (title, rows) => (rows.length ? [h("h2", `${title} `, h("small", number(rows.length))), longList(rows)] : []);
		view.body.querySelector(".links").append(...listed("Linked from", from.filter((one) => !own(one)).map((one) => linked(one, one.address))),
			...listed("Links to", known.map((one) => linked(one, one.target))), broken.length ? h("details", h("summary", `${counted(broken.length, "link")} to nothing in the library`), longList(broken.map((one) => linked(one, null)))) : "");
	} catch (problem) {
		app.fail(problem);
	}
}

function longList(rows) {
	const list = h("ul.plain.small", rows.slice(0, 8));
	if (rows.length <= 8) return list;
	const more = button(`${number(rows.length - 8)} more`, () => { list.append(...rows.slice(8)); more.remove(); }, { class: "quiet" });
	return h("div", list, more);
}

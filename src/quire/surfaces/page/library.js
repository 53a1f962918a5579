// What the library holds and where it comes from. Every change is shown as a plan before it is made.

import { age, button, bytes, check, counted, delay, dot, field, h, number, entry, readUrl, refused, select } from "./dom.js";
import { get, post } from "./api.js";
import { app } from "./app.js";
import { fileFlow, planFlow, progress } from "./plans.js";

const PARTS = [["", "Sources"], ["documents", "Documents"], ["memories", "Memories"], ["health", "Health"]];
const PAGE = 100;
const KINDS = ["memory", "knowledge"];

export async function show(body, params, signal) {
	const part = params.get("part") || "";
	const view = { body, signal, params, status: await app.reload() };
	const name = PARTS.find(([one]) => one === part)?.[1] || "Sources";
	app.title(`${name} of the library`);
	view.rest = h("div.part");
	view.head = h("header.libhead", h("h1", "Library"), totals(view.status), serves(view.status));
	body.append(view.head,
		h("nav.parts", { "aria-label": "Parts of the library" }, PARTS.map(([one, text]) => h("a", { href: one ? `/library?part=${one}` : "/library", "aria-current": one === part ? "page" : null }, text,
			one === "health" && problems(view.status).length ? h("span.badge", problems(view.status).length) : null))),
		view.rest);
	await ({ documents: documentsPart, memories: memoriesPart, health: healthPart }[part] || sourcesPart)(view);
}

function totals(status) {
	const fact = (value, name) => h("div", h("dd", value), h("dt", name));
	return h("dl.totals", fact(number(status.documents), "documents"), fact(number(status.sections), "sections"), fact(number(status.chunks), "chunks"), fact(bytes(status.bytes), "of text"));
}

function serves({ serving, model, embedded, chunks, goes_on: goesOn, model_problem: problem, library, jobs }) {
	const told = serving ? `Searches use words and the model “${serving}”.` : "Searches use words alone.";
	const left = model && embedded < chunks ? ` “${model}” has ${number(embedded)} of ${counted(chunks, "chunk")}.` : "";
	return h("p.soft", `${told}${left}${jobs.some(isGoing) ? "" : goesOn ? " Go on with: quire embed." : problem ? ` ${problem}` : ""} `, h("code", library));
}

// ---- sources

async function sourcesPart(view) {
	const { sources } = await get("sources", {}, view.signal);
	const again = async () => {
		if (view.signal.aborted) return; // what was undone or done late belongs to a view that was left
		view.body.replaceChildren();
		await show(view.body, view.params, view.signal).catch(app.fail);
	};
	view.rest.append(...[
		...view.status.jobs.filter(isGoing).map((job) => running(view, job)),
		app.can("write") ? adding(again) : null,
		h("div.titled", h("h2", "Sources"), app.can("write") && sources.length ? button("Check all", ({ target }) => planFlow(under(target.closest(".titled")), { again, path: "refresh", label: "Refresh" })) : null),
		sources.length ? h("ul.sources", sources.map((one) => sourceNode(one, again))) : h("p.empty", "No sources yet. Name a folder, a page or a site above, or drop files there."),
	].filter(Boolean));
}

const isGoing = ({ state }) => state === "running" || state === "waiting";

// Work that another tab, or this one before it was reloaded, has begun.
function running(view, { job }) {
	const flow = h("div.flow");
	const done = async () => {
		flow.remove();
		const status = await app.reload();
		view.head.replaceChildren(view.head.firstChild, totals(status), serves(status));
	};
	progress(flow, `jobs/${encodeURIComponent(job)}/events`, {}).then(done).catch(app.fail);
	return flow;
}

function under(node) {
	const known = node.nextElementSibling?.classList.contains("flow") ? node.nextElementSibling : null;
	const flow = known || h("div.flow");
	node.after(flow);
	return flow;
}

function sourceNode(one, again) {
	const isText = one.type === "text";
	const name = isText ? `${one.collection}:${one.place}` : one.place;
	const given = { sources: [one.place], collection: one.collection, external: one.kind === "external", site: one.type === "site" };
	const node = h("li", { class: one.problem ? "troubled" : null });
	node.append(
		h("div", h("p.name", dot(one.collection), h("b", name)),
			h("p.facts", h("span", `${one.type} in ${one.collection}`), h("span", counted(one.documents, "document")), isText ? null : h("span", `checked ${age(one.checked_at)}`),
				one.kind !== "document" ? h("span.tag", one.kind) : null, one.include?.length ? h("span", `only ${one.include.join(" ")}`) : null, one.exclude?.length ? h("span", `without ${one.exclude.join(" ")}`) : null),
			one.problem ? h("p.said.problem", one.problem) : null),
		app.can("write") ? h("div.row", isText ? null : button("Check", () => planFlow(flow, { again, given, path: "add", label: "Apply" }), { "aria-label": `Check ${name}` }),
			button("Remove", () => removeSource(one, name, flow, again), { class: "quiet", "aria-label": `Remove the source ${name}` })) : "");
	const flow = h("div.flow");
	node.append(flow);
	return node;
}

async function removeSource(one, name, flow, again) {
	try {
		const body = { place: one.place, collection: one.collection };
		const { removed } = await post("sources/remove", { ...body, dry_run: true });
		const go = button(`Remove it and ${counted(removed.length, "document")}`, () => {
			flow.replaceChildren();
			app.later({ text: `Removing ${name}`, addresses: removed.map(({ address }) => address), path: "sources/remove", body, changed: again });
		}, { class: "danger" });
		flow.replaceChildren(h("div.plan", h("p", `The library forgets this source and removes ${counted(removed.length, "document")}. Files stay where they are.`), h("div.row", go, button("Cancel", () => flow.replaceChildren()))));
		go.focus();
	} catch (problem) {
		app.fail(problem);
	}
}

function adding(again) {
	const flow = h("div.flow");
	const place = h("input", { name: "place", placeholder: "a folder, a file, a URL or a repository", required: true });
	const collection = h("input", { name: "collection", placeholder: "chosen by its name", list: "collections" });
	const site = check("all pages of the site", { name: "site" });
	const external = check("other people’s documents (external)", { name: "external" });
	const files = h("input", { type: "file", multiple: true, class: "unseen", id: "add-files", onchange: () => take(files.files) });
	const take = (list) => { if (list.length) fileFlow(flow, [...list], collection.value.trim(), again); };
	const submit = (event) => {
		event.preventDefault();
		const given = { sources: [place.value.trim()], collection: collection.value.trim() || undefined, site: site.control.checked, external: external.control.checked };
		planFlow(flow, { again, given, path: "add", label: "Add" });
	};
	const node = h("section.adding", { "aria-label": "Add documents" }, h("h2", "Add documents"),
		h("form", { onsubmit: submit },
			h("div.fields", field("Path or URL", place), field("Collection", collection), h("button.main", { type: "submit" }, "Check")),
			h("datalist", { id: "collections" }, Object.keys(app.status.collections).map((value) => h("option", { value }))),
			h("div.row.checks", site, external,
				h("span.spring"), files, h("label.button", { for: "add-files" }, "Choose files"), h("span.soft", "or drop them here"))), flow);
	node.addEventListener("dragover", (event) => { event.preventDefault(); node.classList.add("dropping"); });
	node.addEventListener("dragleave", (event) => { if (!node.contains(event.relatedTarget)) node.classList.remove("dropping"); });
	node.addEventListener("drop", (event) => { event.preventDefault(); node.classList.remove("dropping"); take(event.dataTransfer.files); });
	return node;
}

// ---- documents

const ORDERS = [["address", "by address"], ["newest", "newest first"], ["largest", "largest first"]];

async function documentsPart(view) {
	const given = (name) => view.params.get(name) || "";
	const collections = [["", "All collections"], ...Object.keys(view.status.collections).map((name) => [name, name])];
	view.offset = Number(given("offset")) || 0;
	view.page = h("div");
	const first = () => { view.offset = 0; list(view); };
	view.fields = {
		filter: h("input", { type: "search", name: "filter", value: given("filter"), placeholder: "part of a path", oninput: delay(150, first) }),
		collection: select("collection", collections, given("collection"), first),
		order: select("order", ORDERS, given("order") || "address", first),
	};
	const { filter, collection, order } = view.fields;
	view.rest.append(h("h2.unseen", "Documents"), h("div.fields", field("Filter", filter), field("Collection", collection), field("Order", order)), view.page);
	await list(view);
}

const glob = (text) => (!text || /[*?[]/.test(text) ? text : `*${text}*`);

async function list(view) {
	if (view.signal.aborted) return;
	const { filter, collection, order } = view.fields;
	const params = new URLSearchParams(Object.entries({ part: "documents", filter: filter.value.trim(), collection: collection.value, order: order.value === "address" ? "" : order.value, offset: view.offset || "" }).filter(([, value]) => value));
	app.replace(`/library?${params}`);
	try {
		const query = { path: glob(filter.value.trim()), collection: collection.value, order: order.value, offset: view.offset, limit: PAGE };
		const { documents, total } = await get("documents", query, view.signal);
		const shown = documents.filter(({ address }) => !app.hidden.has(address));
		app.say(counted(total, "document"), { quiet: true });
		view.page.replaceChildren(...(shown.length ? [table(view, shown, () => list(view)), pages(view, total)] : [h("p.empty", "No documents here.")]));
	} catch (problem) {
		if (problem.name !== "AbortError") view.page.replaceChildren(refused(problem));
	}
}

function table(view, documents, changed) {
	const row = (one) => h("tr", h("td", entry(one)),
		h("td.figure", { "data-name": "Size" }, bytes(one.size)), h("td", { "data-name": "Indexed" }, age(one.updated_at)),
		h("td", { "data-name": "Promotion" }, one.promotion === "standard" ? h("span.soft", "standard") : h("span.tag.good", one.promotion)),
		app.can("write") ? h("td", button("Remove", () => drop(one, "remove", changed), { class: "quiet", "aria-label": `Remove ${one.address}` })) : null);
	return h("table.documents", h("caption.unseen", "Documents"), h("thead", h("tr", ["Title and address", "Size", "Indexed", "Promotion"].map((name) => h("th", { scope: "col" }, name)), app.can("write") ? h("td") : null)), h("tbody", documents.map(row)));
}

function drop(one, path, changed) {
	const verb = path === "forget" ? "Forgetting" : "Removing";
	app.later({ text: `${verb} ${one.address}`, addresses: [one.address], path, body: { addresses: [one.address] }, changed });
}

function pages(view, total) {
	if (total <= PAGE) return h("p.soft", counted(total, "document"));
	const turn = (by) => () => { view.offset = Math.max(0, view.offset + by); list(view).then(() => window.scrollTo(0, 0)); };
	return h("nav.row", { "aria-label": "Pages" }, button("← Previous", turn(-PAGE), { disabled: view.offset === 0 }),
		h("span.soft", `${number(view.offset + 1)}–${number(Math.min(total, view.offset + PAGE))} of ${number(total)}`), button("Next →", turn(PAGE), { disabled: view.offset + PAGE >= total }));
}

// ---- memories

async function memoriesPart(view) {
	view.page = h("div");
	const again = async () => {
		const found = await Promise.all(KINDS.map((kind) => get("documents", { kind, order: "newest", limit: 1000 }, view.signal)));
		const all = found.flatMap(({ documents }) => documents).filter(({ address }) => !app.hidden.has(address)).sort((a, b) => b.updated_at - a.updated_at);
		view.page.replaceChildren(all.length ? h("ul.sources", all.map((one) => h("li", h("div", h("p.name", dot(one.collection), h("a", { href: readUrl(one.address) }, one.title || one.path)),
			h("p.facts", h("span.tag", one.kind), h("span", age(one.updated_at)), h("span.path", one.address))),
		app.can("write") ? button("Forget", () => drop(one, "forget", () => again().catch(app.fail)), { class: "quiet", "aria-label": `Forget ${one.address}` }) : null))) : h("p.empty", "Nothing is remembered yet."));
	};
	if (app.can("write")) view.rest.append(remembering(again));
	view.rest.append(h("h2", "Remembered"), view.page);
	await again();
}

function remembering(again) {
	const text = h("textarea", { name: "text", rows: 3, required: true, placeholder: "What is worth knowing later" });
	const kind = select("kind", [["memory", "Memory"], ["knowledge", "Knowledge"]], "memory");
	const name = h("input", { name: "name", placeholder: "made from the text", title: "Another text under the same name replaces it" });
	const tags = h("input", { name: "tags", placeholder: "none" });
	const said = h("div", { role: "status" });
	const submit = async (event) => {
		event.preventDefault();
		const body = { text: text.value, kind: kind.value, name: name.value.trim() || undefined, tags: tags.value.split(/[\s,]+/).filter(Boolean) };
		try {
			const kept = await post("remember", body);
			const outcome = { added: "Saved", replaced: "Saved; the earlier text stays in its history", known: "Known already" }[kept.outcome] || kept.outcome;
			const similar = kept.similar.length ? h("ul.plain.small", kept.similar.map((one) => h("li", h("a", { href: readUrl(one.address) }, one.text.slice(0, 120)), h("small.soft", `${one.address}, ${one.cosine.toFixed(2)}`)))) : null;
			said.replaceChildren(h("p.said", `${outcome}: ${kept.address}.${similar ? " These say nearly the same:" : ""}`, similar));
			event.target.reset();
			await again();
		} catch (problem) {
			app.fail(problem);
		}
	};
	return h("section.adding", { "aria-label": "Remember something" }, h("h2", "Remember something"), h("form", { onsubmit: submit }, field("Text", text),
		h("div.fields", field("Kind", kind), field("Name", name), field("Tags", tags), h("button.main", { type: "submit" }, "Remember"))), said);
}

// ---- health

function problems(status) {
	return [...status.problems.map((problem) => ({ problem })), ...Object.entries(status.not_embedded).map(([address, reason]) => ({ address, problem: `Not embedded: ${reason}` }))];
}

async function healthPart(view) {
	const [{ sources }, status] = await Promise.all([get("sources", {}, view.signal), get("status", { check: app.can("admin") }, view.signal)]);
	const all = [...problems(status), ...sources.filter((one) => one.problem).map((one) => ({ part: one.place, problem: one.problem, fix: "Check the source under Sources, then apply." }))];
	const flow = h("div.flow");
	const run = button("Run the doctor", async () => {
		run.disabled = true;
		try {
			const { result } = await progress(flow, "doctor", { body: {} });
			if (result) flow.replaceChildren(...findings(result));
		} catch (problem) {
			app.fail(problem);
		}
		run.disabled = false;
	}, { class: "main" });
	view.rest.append(h("h2", "Problems"), all.length ? h("ul.sources", all.map(problemNode)) : h("p", "No problems are known."),
		h("h2", "Doctor"), h("p.soft", "The doctor compares the file, its indexes, every text and every span. It changes nothing."), app.can("admin") ? h("div.row", run) : h("p", "In the terminal: ", h("code", "quire doctor")), flow);
}

function problemNode({ address, part, problem, fix }) {
	return h("li.troubled", h("div", address ? h("p.name", h("a", { href: readUrl(address) }, address)) : part ? h("p.name", h("b", part)) : null, h("p", problem), fix ? h("p.soft", `To fix it: ${fix}`) : null));
}

function findings({ findings: found, versions }) {
	const told = Object.entries(versions).map(([name, version]) => `${name} ${version}`).join(", ");
	return [found.length ? h("ul.sources", found.map(problemNode)) : h("p.said.good", { role: "status" }, "All is well: the file, its indexes, every text and every span."), h("p.soft", told)];
}


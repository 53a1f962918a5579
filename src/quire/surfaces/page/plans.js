// A change before it is made, while it is made and after it: the plan, the progress, the report.

import { button, bytes, check, counted, h, number, refused } from "./dom.js";
import { call, follow, get, post } from "./api.js";
import { app } from "./app.js";

const ACTIONS = { refuse: "refused", remove: "to remove", update: "to update", move: "to rename", remake: "to remake", add: "to add", keep: "gone, but kept", skip: "skipped", ignore: "ignored" };
const CHANGES = ["add", "update", "move", "remake", "remove"];
const PLAIN = ["add", "move"]; // the action is the reason
const SHOWN = 6;
const MOST = 1000;

// Shows the plan of `given`, and applies it at `path` when asked to.
export async function planFlow(flow, { again, given = {}, path, label, prune = false }) {
	flow.replaceChildren(h("p.soft", { role: "status" }, "Checking…"));
	try {
		const body = { ...given, prune };
		const { plans } = await post("plan", body);
		const changes = plans.reduce((sum, { counts }) => sum + CHANGES.filter((name) => counts[name]).reduce((part, name) => part + (Number(counts[name]) || 1), 0), 0);
		const kept = plans.some(({ counts }) => counts.keep);
		const apply = button(label, () => carryOut(flow, path, { body }, again), { class: "main", disabled: !changes });
		const close = button(changes ? "Cancel" : "Close", () => flow.replaceChildren());
		const gone = kept || prune ? check("also remove documents whose files are gone", { checked: prune, onchange: ({ target }) => planFlow(flow, { again, given, path, label, prune: target.checked }) }) : null;
		flow.replaceChildren(h("div.plan", plans.length ? plans.map(planNode) : h("p", "Nothing would change."), gone, h("div.row", changes ? apply : null, close)));
		flow.scrollIntoView({ block: "nearest" });
		(changes ? apply : close).focus({ preventScroll: true });
		app.say(changes ? `${counted(changes, "change")} planned.` : "Nothing would change.", { quiet: true });
	} catch (problem) {
		flow.replaceChildren(refused(problem));
	}
}

function planNode({ source, items, counts, problem }) {
	const told = CHANGES.filter((name) => counts[name]).map((name) => h(`span.tag.${name}`, `${number(counts[name])} ${ACTIONS[name]}`));
	const groups = Object.keys(ACTIONS).map((action) => [action, items.filter((one) => one.action === action)]).filter(([, rows]) => rows.length);
	return h("div", h("p.name", h("b", source)),
		h("p.facts", told.length ? told : h("span", "nothing would change"), h("span", `${number(counts.unchanged || 0)} unchanged`)),
		problem ? h("p.said.problem", problem) : null, groups.map(([action, rows]) => group(action, rows)));
}

function group(action, rows) {
	const isLoud = CHANGES.includes(action) || action === "refuse" || action === "keep";
	const list = h("ul.items", rows.slice(0, SHOWN).map(item));
	const rest = rows.length - SHOWN;
	const more = rest > 0 ? button(`and ${number(rest)} more`, () => { list.append(...rows.slice(SHOWN, MOST).map(item)); more.remove(); }, { class: "quiet" }) : null;
	return h("details", { open: isLoud }, h("summary", `${number(rows.length)} ${ACTIONS[action]}`, reasonsOf(rows)), list, more);
}

function reasonsOf(rows) {
	const counts = new Map();
	for (const { action, reason } of rows) if (reason && !PLAIN.includes(action)) counts.set(reason, (counts.get(reason) || 0) + 1);
	const told = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([reason, count]) => (counts.size > 1 ? `${reason} (${number(count)})` : reason));
	return told.length && rows.length > 1 ? h("small.soft", ` ${told.join(", ")}${counts.size > 3 ? ", …" : ""}`) : null;
}

const item = ({ action, path, from, reason }) => h("li", h("code", from ? `${from} → ${path}` : path), reason && !PLAIN.includes(action) ? h("small.soft", ` ${reason}`) : null);

// ---- progress and report

export async function progress(flow, path, given) {
	let id = null;
	const told = h("p", { role: "status" }, "Starting…");
	const bar = h("progress", { max: "1", "aria-label": "Progress" });
	const stop = button("Stop", async () => { stop.disabled = true; if (id) await call(`jobs/${encodeURIComponent(id)}`, { method: "DELETE" }).catch(app.fail); });
	flow.replaceChildren(h("div.plan", told, h("div.row", bar, stop)));
	const job = await follow(path, given, (now) => {
		id = now.job;
		if (!now.total) return;
		[bar.max, bar.value] = [now.total, now.done];
		told.textContent = `${now.work || now.what}: ${number(now.done)} of ${number(now.total)} ${now.unit || ""}${now.failed ? `, ${number(now.failed)} failed` : ""}`;
	});
	if (job.state === "stopped") flow.replaceChildren(h("p.said", { role: "status" }, "Stopped. What was done before is complete; the same again goes on."));
	return job;
}

async function carryOut(flow, path, given, again) {
	try {
		const { result, state } = await progress(flow, path, given);
		if (state === "stopped") return;
		await done(flow, [result], again);
	} catch (problem) {
		flow.replaceChildren(refused(problem));
	}
}

async function done(flow, reports, again) {
	const node = reportNode(reports);
	await again();
	// The list was drawn anew: the report stays above it.
	document.querySelector("nav.parts")?.after(node);
	node.focus();
}

export function reportNode(reports) {
	const sum = (name) => reports.reduce((total, one) => total + (one[name] || 0), 0);
	const all = (name) => reports.flatMap((one) => one[name] || []);
	const parts = ["added", "updated", "moved", "removed", "unchanged"].filter((name) => sum(name)).map((name) => `${number(sum(name))} ${name}`);
	const seconds = sum("seconds");
	const listed = (title, rows, open) => (rows.length ? h("details", { open }, h("summary", title), h("ul.items", rows.slice(0, MOST).map((one) => h("li", typeof one === "string" ? one : [h("code", one.source), h("small.soft", ` ${one.reason}`)])))) : null);
	const [failed, skipped] = [all("failed"), all("skipped")];
	const node = h("div.report", { tabindex: "-1", class: failed.length ? "poor" : null }, h("p", { role: "status" }, `${parts.join(", ") || "Nothing changed"}: ${counted(sum("chunks"), "chunk")} in ${seconds.toFixed(1)} s.`),
		listed(`${number(failed.length)} failed`, failed, true), listed(`${number(skipped.length)} skipped`, skipped, false), listed("Warnings", all("warnings").map((one) => (typeof one === "string" ? one : JSON.stringify(one))), true),
		button("×", () => node.remove(), { class: "icon", "aria-label": "Close" }));
	return node;
}

// ---- files that were dropped

export async function fileFlow(flow, files, collection, again) {
	flow.replaceChildren(h("p.soft", { role: "status" }, "Checking…"));
	const { collections } = app.status.access;
	const target = collection || (collections?.length === 1 ? collections[0] : "content");
	const isThere = target in app.status.collections;
	const known = await Promise.all(files.map((file) => isThere && get("documents", { path: file.name, collection: target, limit: 1 }).then(({ total }) => total > 0, () => false)));
	const rows = files.map((file, at) => h("li", h("span", { class: known[at] ? "tag update" : "tag add" }, known[at] ? "update" : "add"), " ", h("code", file.name), h("small.soft", ` ${bytes(file.size)}`)));
	const go = button(`Add ${counted(files.length, "file")}`, () => uploads(flow, files, collection, again), { class: "main" });
	flow.replaceChildren(h("div.plan", h("p.name", h("b", `${counted(files.length, "file")}, into the collection “${target}”`)), h("ul.items", rows.slice(0, 50)), rows.length > 50 ? h("p.soft", `and ${number(rows.length - 50)} more`) : null,
		h("div.row", go, button("Cancel", () => flow.replaceChildren()))));
	go.focus();
}

async function uploads(flow, files, collection, again) {
	let stopped = false;
	const told = h("p", { role: "status" });
	const bar = h("progress", { max: String(files.length), value: "0", "aria-label": "Progress" });
	flow.replaceChildren(h("div.plan", told, h("div.row", bar, button("Stop", () => { stopped = true; }))));
	const reports = [];
	for (const [at, file] of files.entries()) {
		if (stopped) break;
		told.textContent = `${file.name}: ${number(at + 1)} of ${counted(files.length, "file")}`;
		try {
			reports.push(await call("upload", { bytes: file, query: { path: file.name, collection } }));
		} catch (problem) {
			reports.push({ failed: [{ source: file.name, reason: problem.message }] });
		}
		bar.value = at + 1;
	}
	await done(flow, reports, again);
}

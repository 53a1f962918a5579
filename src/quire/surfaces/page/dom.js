// Nodes and words of the page. Text always goes in as text, never as HTML.

export function h(name, ...children) {
	const props = children[0]?.constructor === Object ? children.shift() : {};
	const [tag, ...classes] = name.split(".");
	const node = document.createElement(tag);
	if (classes.length) node.className = classes.join(" ");
	if (tag === "input") Object.assign(node, { autocomplete: "off", autocapitalize: "off", spellcheck: false });
	for (const [key, value] of Object.entries(props)) {
		if (value === null || value === undefined || value === false) continue;
		if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
		else if (key === "value" || key === "checked" || key === "disabled") node[key] = value;
		else node.setAttribute(key, value === true ? "" : value);
	}
	node.append(...children.flat(3).filter((one) => one !== null && one !== undefined && one !== false));
	return node;
}

export function svg(tag, attributes, ...children) {
	const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
	node.append(...children);
	return node;
}

export const check = (text, props) => h("label.check", { title: props.title }, h("input", { type: "checkbox", ...props }), text);
export const refused = ({ message }) => h("p.said.problem", { role: "alert" }, message);
export const button = (text, onclick, props = {}) => h("button", { type: "button", onclick, ...props }, text);

export const field = (label, control) => h("label.field", h("span", label), control);

export function select(name, options, chosen, onchange) {
	const node = h("select", { name, onchange });
	node.append(...options.map(([value, text]) => h("option", { value }, text)));
	node.value = chosen ?? "";
	if (node.selectedIndex < 0) {
		node.append(h("option", { value: chosen }, chosen));
		node.value = chosen;
	}
	return node;
}

const NUMBER = new Intl.NumberFormat("en");
export const number = (n) => NUMBER.format(n);
export const counted = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;

export function bytes(n) {
	if (n < 1000) return counted(n, "byte");
	const [unit, size] = [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]].find(([, least]) => n >= least);
	return `${(n / size).toFixed(n / size < 10 ? 1 : 0)} ${unit}`;
}

const UNITS = [["year", 31557600e3], ["month", 2629800e3], ["day", 864e5], ["hour", 36e5], ["minute", 6e4]];
export function age(ms) {
	if (!ms) return "never";
	const past = Date.now() - ms;
	const [unit, size] = UNITS.find(([, least]) => past >= least) || [];
	return unit ? `${counted(Math.floor(past / size), unit)} ago` : "just now";
}

export const lines = (first, last) =>
	first === last ? `line ${number(first)}` : `lines ${number(first)}–${number(last)}`;
export const place = (one) => one.location || lines(one.start_line, one.end_line);
export const webLink = (link) => (/^https?:\/\//i.test(link || "") ? link : null);
export const readUrl = (address, q) =>
	`/read?address=${encodeURIComponent(address)}${q ? `&q=${encodeURIComponent(q)}` : ""}`;
export const cutsUrl = (address) => `/cuts?address=${encodeURIComponent(address)}`;

// Offsets of the server count code points; strings of JavaScript count UTF-16 units.
export function slicer(text) {
	if (!/[\ud800-\udfff]/.test(text)) return (start, end) => text.slice(start, end);
	const points = Array.from(text);
	return (start, end) => points.slice(start, end).join("");
}

export function marked(text, highlights, from = 0) {
	const slice = slicer(text);
	const nodes = [];
	let at = from;
	for (const [start, end] of highlights) {
		if (start < from) continue;
		nodes.push(slice(at, start), h("mark", slice(start, end)));
		at = end;
	}
	nodes.push(slice(at));
	return nodes;
}

export const entry = (one, more = "") => [h("a", { href: readUrl(one.address), "data-focus": one.address }, one.title || one.path),
	h("small.soft", dot(one.collection), one.address, more)];

export async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
	} catch { // a page that is not served from this machine or by HTTPS has no clipboard
		const area = h("textarea", { class: "unseen", value: text, "aria-hidden": "true" });
		document.body.append(area);
		area.select();
		document.execCommand("copy");
		area.remove();
	}
}

export function delay(ms, work) {
	let timer = 0;
	return (...given) => {
		clearTimeout(timer);
		timer = setTimeout(work, ms, ...given);
	};
}

const HUES = 8;
let order = [];
export const setCollections = (names) => { order = [...names].sort(); };
export const hue = (collection) => `hue${Math.max(0, order.indexOf(collection)) % HUES}`;
export const dot = (collection) => h(`span.dot.${hue(collection)}`, { "aria-hidden": "true" });

export const PROMOTIONS = ["standard", "important", "critical"];

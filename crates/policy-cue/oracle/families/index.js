import { expressions } from "./expressions.js";

export const families = { expressions };

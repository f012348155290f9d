package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
	luajson "layeh.com/gopher-json"
)

type script struct {
	Text      string `json:"text"`
	Function  string `json:"function"`
	Arguments []any  `json:"arguments"`
	Results   int    `json:"results"`
}

type result struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// The time limit of a script: longer than in Karmada, because test machines are busy.
const limit = 20 * time.Second

// The functions that Karmada removes, by library: base functions that fail with an error, functions of string that create large strings,
// and functions of os other than time.
var removed = map[string][]string{
	lua.BaseLibName: {
		"collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "rawequal", "rawget", "rawset", "setfenv",
		"setmetatable", "module", "newproxy",
	},
	lua.StringLibName: {"gsub", "rep", "dump"},
	lua.OsLibName:     {"clock", "difftime", "execute", "exit", "getenv", "remove", "rename", "setenv", "setlocale", "tmpname"},
}

// run returns the results of the function.
func (asked *script) run() (results []result, err error) {
	state, err := newState()
	if err != nil {
		return nil, err
	}
	defer state.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	state.SetContext(ctx)

	if err := state.DoString(asked.Text); err != nil {
		return nil, err
	}
	function, isFunction := state.GetGlobal(asked.Function).(*lua.LFunction)
	if !isFunction {
		return nil, errors.New("the function does not exist")
	}
	arguments := make([]lua.LValue, len(asked.Arguments))
	for index, argument := range asked.Arguments {
		arguments[index] = luajson.DecodeValue(state, argument)
	}
	call := lua.P{Fn: function, NRet: asked.Results, Protect: true}
	if err := state.CallByParam(call, arguments...); err != nil {
		return nil, err
	}
	for index := range asked.Results {
		value := state.Get(index - asked.Results)
		encoded, err := luajson.Encode(value)
		if err != nil {
			return nil, err
		}
		results = append(results, result{Type: value.Type().String(), Value: encoded})
	}
	return results, nil
}

// newState returns a state with the libraries that Karmada opens.
func newState() (*lua.LState, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
		{lua.StringLibName, lua.OpenString},
		{lua.MathLibName, lua.OpenMath},
		{lua.OsLibName, lua.OpenOs},
	} {
		open := lua.P{Fn: state.NewFunction(library.open), Protect: true}
		if err := state.CallByParam(open, lua.LString(library.name)); err != nil {
			return nil, err
		}
		for _, name := range removed[library.name] {
			within := state.G.Global
			if library.name != lua.BaseLibName {
				within = state.GetGlobal(library.name).(*lua.LTable)
			}
			within.RawSetString(name, state.NewFunction(func(state *lua.LState) int {
				state.RaiseError("%s", fmt.Sprintf("%s is not there", name))
				return 0
			}))
		}
	}
	return state, nil
}

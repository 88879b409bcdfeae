// SPDX-License-Identifier: Apache-2.0

// Renders charts with Helm's own library: one JSON request a line on standard input, one JSON answer a line on standard output.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"sort"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
)

type request struct {
	Dir    string            `json:"dir"`
	Files  map[string]string `json:"files"`
	Values []string          `json:"values"`
	Set    []string          `json:"set"`
	// Forms of --set by turns with their texts: "json", "set", "string", "literal".
	Flags       []string `json:"flags"`
	Release     string   `json:"release"`
	Namespace   string   `json:"namespace"`
	KubeVersion string   `json:"kubeVersion"`
	APIVersions []string `json:"apiVersions"`
	IncludeCRDs bool     `json:"includeCRDs"`
	// The chart has one template, whose bare output is wanted.
	Bare bool `json:"bare"`
}

type answer struct {
	Out   string `json:"out"`
	Error string `json:"error"`
}

func mergeMaps(a, b map[string]interface{}) map[string]interface{} {
	out := make(map[string]interface{}, len(a))
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		if v, ok := v.(map[string]interface{}); ok {
			if bv, ok := out[k].(map[string]interface{}); ok {
				out[k] = mergeMaps(bv, v)
				continue
			}
		}
		out[k] = v
	}
	return out
}

func values(r request) (map[string]interface{}, error) {
	base := map[string]interface{}{}
	for _, text := range r.Values {
		current := map[string]interface{}{}
		if err := yaml.Unmarshal([]byte(text), &current); err != nil {
			return nil, err
		}
		base = mergeMaps(base, current)
	}
	for _, kind := range []string{"json", "set", "string", "literal"} {
		for i := 0; i+1 < len(r.Flags); i += 2 {
			if r.Flags[i] != kind {
				continue
			}
			var err error
			switch kind {
			case "json":
				err = strvals.ParseJSON(r.Flags[i+1], base)
			case "set":
				err = strvals.ParseInto(r.Flags[i+1], base)
			case "string":
				err = strvals.ParseIntoString(r.Flags[i+1], base)
			case "literal":
				err = strvals.ParseLiteralInto(r.Flags[i+1], base)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	for _, set := range r.Set {
		if err := strvals.ParseInto(set, base); err != nil {
			return nil, err
		}
	}
	return base, nil
}

func load(r request) (*chart.Chart, error) {
	if r.Dir != "" {
		return loader.Load(r.Dir)
	}
	var files []*loader.BufferedFile
	for name, data := range r.Files {
		files = append(files, &loader.BufferedFile{Name: name, Data: []byte(data)})
	}
	sort.Slice(files, func(i, j int) bool { return files[i].Name < files[j].Name })
	return loader.LoadFiles(files)
}

// As action.CheckDependencies.
func checkDependencies(c *chart.Chart) error {
	for _, r := range c.Metadata.Dependencies {
		found := false
		for _, d := range c.Dependencies() {
			found = found || d.Name() == r.Name
		}
		if !found {
			return fmt.Errorf("found in Chart.yaml, but missing in charts/ directory: %s", r.Name)
		}
	}
	return nil
}

// As action.Install of `helm template` does it.
func render(r request) (out string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	c, err := load(r)
	if err != nil {
		return "", err
	}
	if c.Metadata.Type == "library" {
		return "", fmt.Errorf("library charts are not installable")
	}
	if err := checkDependencies(c); err != nil {
		return "", err
	}
	vals, err := values(r)
	if err != nil {
		return "", err
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, vals); err != nil {
		return "", err
	}
	caps := chartutil.DefaultCapabilities.Copy()
	if r.KubeVersion != "" {
		v, err := chartutil.ParseKubeVersion(r.KubeVersion)
		if err != nil {
			return "", err
		}
		caps.KubeVersion = *v
	}
	caps.APIVersions = append(caps.APIVersions, r.APIVersions...)
	options := chartutil.ReleaseOptions{Name: r.Release, Namespace: r.Namespace, Revision: 1, IsInstall: true}
	top, err := chartutil.ToRenderValues(c, vals, options, caps)
	if err != nil {
		return "", err
	}
	if c.Metadata.KubeVersion != "" && !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, caps.KubeVersion.String()) {
		return "", fmt.Errorf("chart requires kubeVersion: %s", c.Metadata.KubeVersion)
	}
	files, err := engine.Render(c, top)
	if err != nil {
		return "", err
	}
	if r.Bare {
		return files[path.Join(c.Name(), "templates/t.yaml")], nil
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return "", err
	}
	b := &bytes.Buffer{}
	if r.IncludeCRDs {
		for _, crd := range c.CRDObjects() {
			fmt.Fprintf(b, "---\n# Source: %s\n%s\n", crd.Filename, string(crd.File.Data))
		}
	}
	for _, m := range manifests {
		fmt.Fprintf(b, "---\n# Source: %s\n%s\n", m.Name, m.Content)
	}
	text := strings.TrimSpace(b.String()) + "\n"
	for _, h := range hooks {
		text += fmt.Sprintf("---\n# Source: %s\n%s\n", h.Path, h.Manifest)
	}
	return text, nil
}

// Loads each chart below `dir` once and renders it for each of `count` kernels, as a rollout of recipes needs it. Gives the size of all output.
func bench(dir string, count int) (int, error) {
	charts, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	size := 0
	for _, entry := range charts {
		c, err := loader.Load(path.Join(dir, entry.Name()))
		if err != nil {
			return 0, err
		}
		for i := 0; i < count; i++ {
			vals := map[string]interface{}{"kernelFullVersion": fmt.Sprintf("5.14.0-%d.el9.x86_64", 100+i)}
			if err := chartutil.ProcessDependenciesWithMerge(c, vals); err != nil {
				return 0, err
			}
			options := chartutil.ReleaseOptions{Name: entry.Name(), Namespace: entry.Name(), Revision: 1, IsInstall: true}
			top, err := chartutil.ToRenderValues(c, vals, options, chartutil.DefaultCapabilities.Copy())
			if err != nil {
				return 0, err
			}
			files, err := engine.Render(c, top)
			if err != nil {
				return 0, err
			}
			_, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
			if err != nil {
				return 0, err
			}
			for _, m := range manifests {
				size += len(m.Content)
			}
		}
	}
	return size, nil
}

func main() {
	log.SetOutput(io.Discard)
	if len(os.Args) > 3 && os.Args[1] == "bench" {
		count, err := strconv.Atoi(os.Args[3])
		if err == nil {
			count, err = bench(os.Args[2], count)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(count)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "api-versions" {
		fmt.Println(strings.Join(chartutil.DefaultVersionSet, "\n"))
		fmt.Printf("%+v\n", chartutil.DefaultCapabilities.HelmVersion)
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var r request
			var a answer
			if e := json.Unmarshal(line, &r); e != nil {
				a.Error = e.Error()
			} else if a.Out, e = render(r); e != nil {
				a.Error = e.Error()
				a.Out = ""
			}
			text, _ := json.Marshal(a)
			out.Write(text)
			out.WriteByte('\n')
			out.Flush()
		}
		if err != nil {
			return
		}
	}
}

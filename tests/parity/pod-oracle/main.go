// pod-oracle says what Kubernetes' own validation thinks of pod templates: a JSON template a line in, a JSON answer a line
// out, {"faults": ["field: why", ...]} or {"decode": "why it is no template"}. tests/parity/pod_templates.jsonl was recorded
// with it. Build: go build -C tests/parity/pod-oracle
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
	kjson "sigs.k8s.io/json"
)

func main() {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		var t v1.PodTemplate
		res := map[string]interface{}{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(line, &t.Template); err != nil {
			res["decode"] = err.Error()
		} else {
			corev1.SetObjectDefaults_PodTemplate(&t)
			var c core.PodTemplateSpec
			corev1.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&t.Template, &c, nil)
			p := core.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "task", Namespace: "ns"}, Template: c}
			errs := validation.ValidatePodTemplate(&p, validation.PodValidationOptions{PodLevelResourcesEnabled: true})
			l := []string{}
			for _, e := range errs {
				l = append(l, strings.TrimPrefix(e.Field, "template.")+": "+e.ErrorBody())
			}
			res["faults"] = l
		}
		b, _ := json.Marshal(res)
		fmt.Fprintln(out, string(b))
		out.Flush()
	}
}
